// LiteRT's NNAPI delegate as an external delegate, for any host that loads one by name (load_delegate in Python).
//
// Options: device, support_library, cache_dir, model_token, allow_fp16, burst, dynamic, partitions, priority.

#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>

#include "tflite/core/subgraph.h"
#include "tflite/delegates/external/external_delegate_interface.h"
#include "tflite/delegates/nnapi/nnapi_delegate.h"
#include "tflite/nnapi/sl/include/SupportLibrary.h"

namespace {

using Delegate = tflite::StatefulNnApiDelegate;

// The delegate keeps pointers to the texts of its options.
struct Made {
  std::unordered_map<std::string, std::string> texts;
  std::unique_ptr<const tflite::nnapi::NnApiSupportLibrary> library;
  std::unique_ptr<Delegate> delegate;
};

std::unordered_map<TfLiteDelegate*, std::unique_ptr<Made>> made;

}  // namespace

extern "C" TfLiteDelegate* tflite_plugin_create_delegate(const char* const* keys, const char* const* values,
                                                         size_t count, void (*report)(const char*)) {
  auto it = std::make_unique<Made>();
  for (size_t i = 0; i < count; ++i) it->texts[keys[i]] = values[i];
  const auto text = [&it](const char* key) {
    const auto found = it->texts.find(key);
    return found == it->texts.end() ? nullptr : found->second.c_str();
  };
  const auto number = [&text](const char* key, int otherwise) {
    return text(key) ? std::atoi(text(key)) : otherwise;
  };
  Delegate::Options options;
  options.accelerator_name = text("device");
  options.cache_dir = text("cache_dir");
  options.model_token = text("model_token");
  options.allow_fp16 = number("allow_fp16", options.allow_fp16);
  options.use_burst_computation = number("burst", options.use_burst_computation);
  options.allow_dynamic_dimensions = number("dynamic", options.allow_dynamic_dimensions);
  options.max_number_delegated_partitions = number("partitions", options.max_number_delegated_partitions);
  options.execution_priority = number("priority", options.execution_priority);
  if (const char* path = text("support_library")) {
    it->library = tflite::nnapi::loadNnApiSupportLibrary(std::string(path));
    if (!it->library) {
      if (report) report("the support library was refused");
      return nullptr;
    }
    it->delegate = std::make_unique<Delegate>(it->library->getFL5(), options);
  } else {
    it->delegate = std::make_unique<Delegate>(options);
  }
  TfLiteDelegate* delegate = it->delegate.get();
  made[delegate] = std::move(it);
  return delegate;
}

extern "C" void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate) { made.erase(delegate); }

// The delegate's helpers refer to these two functions of the interpreter, and the delegate does not call them. The
// interpreter's own ones are not visible outside of its library.
namespace tflite {
TfLiteStatus Subgraph::AcquireSubgraphContext(int, TfLiteContext**) { return kTfLiteError; }
TfLiteStatus Subgraph::ReleaseSubgraphContext(int) { return kTfLiteError; }
}  // namespace tflite
