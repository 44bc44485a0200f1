// Runs a model with TensorFlow Lite's C library and the delegate, both loaded at run time:
//
//   classify libtensorflowlite_c.so libnnhal_delegate.so MODEL [KEY=VALUE]...
//
// The input is a ramp from 0 to 1; float models only. It prints the greatest output, and how long a run takes.

#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

void* load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(dlerror());
  return library;
}

// A function of a library, by its name.
template <typename Function>
Function* find(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) fail(std::string(name) + " is not in the library");
  return reinterpret_cast<Function*>(found);
}

void report(const char* message) { std::fprintf(stderr, "%s\n", message); }

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) fail("usage: classify libtensorflowlite_c.so libnnhal_delegate.so MODEL [KEY=VALUE]...");
  void* tflite = load(arguments[1]);
  void* ours = load(arguments[2]);

  std::vector<std::string> texts;
  for (int at = 4; at < count; ++at) {
    const std::string pair = arguments[at];
    const auto middle = pair.find('=');
    if (middle == std::string::npos) fail(pair + " is no KEY=VALUE");
    texts.push_back(pair.substr(0, middle));
    texts.push_back(pair.substr(middle + 1));
  }
  std::vector<const char*> keys, values;
  for (std::size_t at = 0; at < texts.size(); at += 2) {
    keys.push_back(texts[at].c_str());
    values.push_back(texts[at + 1].c_str());
  }
  auto* create = find<void*(const char**, const char**, std::size_t, void (*)(const char*))>(
      ours, "tflite_plugin_create_delegate");
  auto* destroy = find<void(void*)>(ours, "tflite_plugin_destroy_delegate");
  void* delegate = create(keys.data(), values.data(), keys.size(), report);
  if (delegate == nullptr) return 1;

  void* model = find<void*(const char*)>(tflite, "TfLiteModelCreateFromFile")(arguments[3]);
  if (model == nullptr) fail("the model cannot be read");
  void* options = find<void*()>(tflite, "TfLiteInterpreterOptionsCreate")();
  find<void(void*, void*)>(tflite, "TfLiteInterpreterOptionsAddDelegate")(options, delegate);
  void* interpreter = find<void*(void*, void*)>(tflite, "TfLiteInterpreterCreate")(model, options);
  if (interpreter == nullptr) fail("no interpreter comes of the model");
  if (find<int(void*)>(tflite, "TfLiteInterpreterAllocateTensors")(interpreter) != 0) fail("no tensors");

  void* input = find<void*(void*, std::int32_t)>(tflite, "TfLiteInterpreterGetInputTensor")(interpreter, 0);
  auto* size_of = find<std::size_t(const void*)>(tflite, "TfLiteTensorByteSize");
  std::vector<float> ramp(size_of(input) / sizeof(float));
  for (std::size_t at = 0; at < ramp.size(); ++at) ramp[at] = static_cast<float>(at) / static_cast<float>(ramp.size());
  auto* fill = find<int(void*, const void*, std::size_t)>(tflite, "TfLiteTensorCopyFromBuffer");
  if (fill(input, ramp.data(), size_of(input)) != 0) fail("the input is not taken");

  auto* invoke = find<int(void*)>(tflite, "TfLiteInterpreterInvoke");
  if (invoke(interpreter) != 0) fail("it does not run");
  constexpr int kRuns = 20;
  const auto begin = std::chrono::steady_clock::now();
  for (int run = 0; run < kRuns; ++run) {
    if (invoke(interpreter) != 0) fail("it does not run");
  }
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;

  const void* output =
      find<const void*(const void*, std::int32_t)>(tflite, "TfLiteInterpreterGetOutputTensor")(interpreter, 0);
  std::vector<float> results(size_of(output) / sizeof(float));
  auto* read = find<int(const void*, void*, std::size_t)>(tflite, "TfLiteTensorCopyToBuffer");
  if (read(output, results.data(), size_of(output)) != 0) fail("the output is not given");
  std::size_t best = 0;
  for (std::size_t at = 0; at < results.size(); ++at) {
    if (results[at] > results[best]) best = at;
  }
  std::printf("output %zu is %.6f; %.3f ms a run\n", best, static_cast<double>(results[best]),
              taken.count() / kRuns);

  // The interpreter goes before the delegate that it uses.
  find<void(void*)>(tflite, "TfLiteInterpreterDelete")(interpreter);
  find<void(void*)>(tflite, "TfLiteInterpreterOptionsDelete")(options);
  find<void(void*)>(tflite, "TfLiteModelDelete")(model);
  destroy(delegate);
}
