// An interpreter with a profiler gets the times of the delegate's operations.
//
// The interpreter is the one in `libtensorflow_cc.so.2` of the wheel `tensorflow`, a library that exports its classes. They
// are declared here as far as they are called, since the wheel has no headers for them.
//
//     profiler libnnhal_delegate.so
#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

struct TfLiteContext;
struct TfLiteNode;
struct TfLiteDelegate;
struct TfLiteQuantizationParams {
  float scale;
  int32_t zero_point;
};
enum TfLiteType { kTfLiteFloat32 = 1 };
enum TfLiteStatus { kTfLiteOk = 0 };
struct TfLiteRegistration {
  void* (*init)(TfLiteContext*, const char*, size_t);
  void (*free)(TfLiteContext*, void*);
  TfLiteStatus (*prepare)(TfLiteContext*, TfLiteNode*);
  TfLiteStatus (*invoke)(TfLiteContext*, TfLiteNode*);
  const char* (*profiling_string)(const TfLiteContext*, const TfLiteNode*);
  int32_t builtin_code;
  const char* custom_name;
  int version;
  void* registration_external;
  void* async_kernel;
  uint64_t inplace_operator;
};

namespace tflite {
class ErrorReporter;

class Profiler {
 public:
  enum class EventType { DELEGATE_OPERATOR = 4 };
  virtual ~Profiler() {}
  virtual uint32_t BeginEvent(const char*, EventType, int64_t, int64_t) = 0;
  virtual void EndEvent(uint32_t, int64_t, int64_t) = 0;
  virtual void EndEvent(uint32_t) = 0;
  virtual void AddEvent(const char*, EventType, uint64_t, int64_t, int64_t) = 0;
  virtual void AddEventWithData(const char*, EventType, const void*) = 0;
};

namespace impl {
class Interpreter {
 public:
  explicit Interpreter(ErrorReporter*);
  ~Interpreter();
  TfLiteStatus AddTensors(int, int*);
  TfLiteStatus SetInputs(std::vector<int>);
  TfLiteStatus SetOutputs(std::vector<int>);
  TfLiteStatus SetTensorParametersReadWrite(int, TfLiteType, const char*, unsigned long, const int*,
                                            TfLiteQuantizationParams, bool, unsigned long, const int*);
  TfLiteStatus AddNodeWithParameters(const std::vector<int>&, const std::vector<int>&, const char*, unsigned long,
                                     void*, const TfLiteRegistration*, int*);
  TfLiteStatus AllocateTensors();
  TfLiteStatus Invoke();
  void SetProfiler(Profiler*);
  TfLiteStatus ModifyGraphWithDelegate(TfLiteDelegate*);

 private:
  char fields_[1 << 16];  // More than it has.
};
}  // namespace impl
}  // namespace tflite

static void demand(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

static TfLiteContext* seen = nullptr;

static TfLiteStatus see(TfLiteContext* context, TfLiteNode*) {
  seen = context;
  return kTfLiteOk;
}

// The memory of a tensor: a context has its tensors at 16, of 112 bytes each, with their data at 8.
static float* data(int tensor) {
  char* tensors = *reinterpret_cast<char**>(reinterpret_cast<char*>(seen) + 16);
  return *reinterpret_cast<float**>(tensors + 112 * tensor + 8);
}

struct Recorder : tflite::Profiler {
  struct Event {
    std::string name;
    int64_t index;
  };
  std::vector<Event> operations;
  int nodes = 0;

  uint32_t BeginEvent(const char*, EventType, int64_t, int64_t) override {
    nodes += 1;
    return 1;
  }
  void EndEvent(uint32_t, int64_t, int64_t) override {}
  void EndEvent(uint32_t) override {}
  void AddEvent(const char* name, EventType type, uint64_t microseconds, int64_t index, int64_t) override {
    if (type != EventType::DELEGATE_OPERATOR) return;
    demand(microseconds < 10000000, "a time is in microseconds");
    operations.push_back({name, index});
  }
  void AddEventWithData(const char*, EventType, const void*) override {}
};

int main(int count, char** words) {
  demand(count == 2, "usage: profiler libnnhal_delegate.so");
  void* library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  demand(library != nullptr, dlerror());
  using Create = TfLiteDelegate* (*)(const char* const*, const char* const*, size_t, void (*)(const char*));
  auto create = reinterpret_cast<Create>(dlsym(library, "tflite_plugin_create_delegate"));
  auto destroy = reinterpret_cast<void (*)(TfLiteDelegate*)>(dlsym(library, "tflite_plugin_destroy_delegate"));
  TfLiteDelegate* delegate = create(nullptr, nullptr, 0, nullptr);
  demand(delegate != nullptr, "a delegate is made");

  Recorder recorder;
  {
    // tanh(relu(x)), of operators whose own kernels are never called.
    tflite::impl::Interpreter interpreter(nullptr);
    interpreter.SetProfiler(&recorder);
    const int shape[] = {2, 3};
    interpreter.AddTensors(3, nullptr);
    for (int tensor = 0; tensor < 3; ++tensor) {
      interpreter.SetTensorParametersReadWrite(tensor, kTfLiteFloat32, "", 2, shape, {0, 0}, false, 0, nullptr);
    }
    interpreter.SetInputs({0});
    interpreter.SetOutputs({2});
    const int codes[] = {19, 28};
    for (int node = 0; node < 2; ++node) {
      TfLiteRegistration registration = {};
      registration.prepare = see;
      registration.builtin_code = codes[node];
      registration.version = 1;
      interpreter.AddNodeWithParameters({node}, {node + 1}, nullptr, 0, nullptr, &registration, nullptr);
    }
    demand(interpreter.AllocateTensors() == kTfLiteOk, "tensors are allocated");
    demand(interpreter.ModifyGraphWithDelegate(delegate) == kTfLiteOk, "the delegate is applied");
    demand(interpreter.AllocateTensors() == kTfLiteOk, "tensors are allocated again");
    for (int run = 0; run < 3; ++run) {
      const float value[] = {-1, 0, 1, 2, -3, 0.5f};
      for (int at = 0; at < 6; ++at) data(0)[at] = value[at];
      demand(interpreter.Invoke() == kTfLiteOk, "it runs");
      for (int at = 0; at < 6; ++at) {
        demand(std::abs(data(2)[at] - std::tanh(std::fmax(value[at], 0))) < 1e-5, "the answer is right");
      }
    }
  }
  destroy(delegate);
  demand(recorder.nodes > 0, "the interpreter profiles");
  demand(recorder.operations.size() % 3 == 0 && !recorder.operations.empty(), "each run shows its operations");
  demand(recorder.operations[0].index == 0, "operations are counted from 0");
  std::printf("a profiler of TensorFlow gets");
  for (size_t at = 0; at < recorder.operations.size() / 3; ++at) {
    std::printf(" %s", recorder.operations[at].name.c_str());
  }
  std::printf(" in each of 3 runs\n");
}
