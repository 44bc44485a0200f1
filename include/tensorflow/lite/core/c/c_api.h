/*
 * The C API of TensorFlow Lite, as libtensorflowlite_c.so of nnhal has it. Names, arguments and meaning are
 * those of TensorFlow 2.17.
 *
 * Objects are handles that are looked up: one that was deleted, or never was, makes a call fail and does no harm.
 * A call that fails answers kTfLiteError or another status, or null, 0 or -1, and says why to the error reporter
 * of the options, else to standard error.
 *
 * An interpreter and its tensors are used by one thread at a time, but for TfLiteInterpreterCancel.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NNHAL_TENSORFLOW_LITE_CORE_C_C_API_H
#define NNHAL_TENSORFLOW_LITE_CORE_C_C_API_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include "tensorflow/lite/builtin_ops.h"
#include "tensorflow/lite/core/c/c_api_types.h"
#include "tensorflow/lite/core/c/operator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TfLiteModel TfLiteModel;
typedef struct TfLiteInterpreterOptions TfLiteInterpreterOptions;
typedef struct TfLiteInterpreter TfLiteInterpreter;
typedef struct TfLiteSignatureRunner TfLiteSignatureRunner;

/* ---- Versions ---- */

/* The version of TensorFlow whose API this is, as "2.17.1". */
TFL_CAPI_EXPORT extern const char* TfLiteVersion(void);
TFL_CAPI_EXPORT extern const char* TfLiteExtensionApisVersion(void);

/* The version of the file format. */
TFL_CAPI_EXPORT extern int TfLiteSchemaVersion(void);

/* ---- Models ---- */

/* A model of the bytes of a .tflite file; null if they are none. The bytes are copied. */
TFL_CAPI_EXPORT extern TfLiteModel* TfLiteModelCreate(const void* model_data, size_t model_size);
TFL_CAPI_EXPORT extern TfLiteModel* TfLiteModelCreateWithErrorReporter(
    const void* model_data, size_t model_size,
    void (*reporter)(void* user_data, const char* format, va_list args), void* user_data);

/* A model of a file; null if it is none. Large constants stay in the file, so it must not change. */
TFL_CAPI_EXPORT extern TfLiteModel* TfLiteModelCreateFromFile(const char* model_path);
TFL_CAPI_EXPORT extern TfLiteModel* TfLiteModelCreateFromFileWithErrorReporter(
    const char* model_path, void (*reporter)(void* user_data, const char* format, va_list args),
    void* user_data);

/* Interpreters that were made of the model stay. */
TFL_CAPI_EXPORT extern void TfLiteModelDelete(TfLiteModel* model);

/* ---- Options ---- */

TFL_CAPI_EXPORT extern TfLiteInterpreterOptions* TfLiteInterpreterOptionsCreate(void);
TFL_CAPI_EXPORT extern TfLiteInterpreterOptions* TfLiteInterpreterOptionsCopy(
    const TfLiteInterpreterOptions* from);

/* Interpreters that were made with the options stay. */
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsDelete(TfLiteInterpreterOptions* options);

/* The most threads of a run; 0 is 1. With -1, or without a call: as NNHAL_THREADS says. */
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsSetNumThreads(TfLiteInterpreterOptions* options,
                                                                  int32_t num_threads);

/*
 * A delegate of nnhal, or one that this library has made itself, is ignored: its work is done anyway. With another
 * one no interpreter is made, unless TfLiteInterpreterOptionsSetEnableDelegateFallback allows it.
 */
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsAddDelegate(TfLiteInterpreterOptions* options,
                                                                TfLiteOpaqueDelegate* delegate);

/* Sentences come as the one argument of the format "%s". */
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsSetErrorReporter(
    TfLiteInterpreterOptions* options,
    void (*reporter)(void* user_data, const char* format, va_list args), void* user_data);

/* An operator of the program's is not called: a model that needs it gets no interpreter. */
TFL_CAPI_EXPORT extern void TfLiteInterpreterOptionsAddOperator(TfLiteInterpreterOptions* options,
                                                                TfLiteOperator* registration);

TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterOptionsEnableCancellation(
    TfLiteInterpreterOptions* options, bool enable);

/* ---- Interpreters ---- */

/* Null if the model has operators that there is no implementation of. Options may be null. */
TFL_CAPI_EXPORT extern TfLiteInterpreter* TfLiteInterpreterCreate(
    const TfLiteModel* model, const TfLiteInterpreterOptions* optional_options);

/* With all of its tensors. */
TFL_CAPI_EXPORT extern void TfLiteInterpreterDelete(TfLiteInterpreter* interpreter);

TFL_CAPI_EXPORT extern int32_t TfLiteInterpreterGetInputTensorCount(
    const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT extern const int* TfLiteInterpreterInputTensorIndices(
    const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT extern TfLiteTensor* TfLiteInterpreterGetInputTensor(
    const TfLiteInterpreter* interpreter, int32_t input_index);

/* Any shape that the model works with; TfLiteInterpreterAllocateTensors says whether it does. */
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterResizeInputTensor(
    TfLiteInterpreter* interpreter, int32_t input_index, const int* input_dims,
    int32_t input_dims_size);

/* Prepares the model for the shapes of its inputs. Shapes of outputs are known after it, unless they follow from
 * values. */
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterAllocateTensors(TfLiteInterpreter* interpreter);

TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterInvoke(TfLiteInterpreter* interpreter);

TFL_CAPI_EXPORT extern int32_t TfLiteInterpreterGetOutputTensorCount(
    const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT extern const int* TfLiteInterpreterOutputTensorIndices(
    const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT extern const TfLiteTensor* TfLiteInterpreterGetOutputTensor(
    const TfLiteInterpreter* interpreter, int32_t output_index);

/* Any tensor. Constants have their elements, variables those after the last run; tensors between operators none. */
TFL_CAPI_EXPORT extern TfLiteTensor* TfLiteInterpreterGetTensor(const TfLiteInterpreter* interpreter,
                                                                int index);

/* From any thread: the run that is going on ends with kTfLiteCancelled. */
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteInterpreterCancel(const TfLiteInterpreter* interpreter);

/* ---- Signatures ---- */

TFL_CAPI_EXPORT extern int32_t TfLiteInterpreterGetSignatureCount(
    const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT extern const char* TfLiteInterpreterGetSignatureKey(
    const TfLiteInterpreter* interpreter, int32_t signature_index);

/* To be deleted before the interpreter. A null key stands for the first signature of the main subgraph, or for the
 * model itself if it has none. */
TFL_CAPI_EXPORT extern TfLiteSignatureRunner* TfLiteInterpreterGetSignatureRunner(
    const TfLiteInterpreter* interpreter, const char* signature_key);

/* Names come in alphabetical order, null behind the last. */
TFL_CAPI_EXPORT extern size_t TfLiteSignatureRunnerGetInputCount(
    const TfLiteSignatureRunner* signature_runner);
TFL_CAPI_EXPORT extern const char* TfLiteSignatureRunnerGetInputName(
    const TfLiteSignatureRunner* signature_runner, int32_t input_index);

/* Only lengths that the file leaves open can be changed. */
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteSignatureRunnerResizeInputTensor(
    TfLiteSignatureRunner* signature_runner, const char* input_name, const int* input_dims,
    int32_t input_dims_size);

TFL_CAPI_EXPORT extern TfLiteStatus TfLiteSignatureRunnerAllocateTensors(
    TfLiteSignatureRunner* signature_runner);
TFL_CAPI_EXPORT extern TfLiteTensor* TfLiteSignatureRunnerGetInputTensor(
    TfLiteSignatureRunner* signature_runner, const char* input_name);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteSignatureRunnerInvoke(
    TfLiteSignatureRunner* signature_runner);
TFL_CAPI_EXPORT extern size_t TfLiteSignatureRunnerGetOutputCount(
    const TfLiteSignatureRunner* signature_runner);
TFL_CAPI_EXPORT extern const char* TfLiteSignatureRunnerGetOutputName(
    const TfLiteSignatureRunner* signature_runner, int32_t output_index);
TFL_CAPI_EXPORT extern const TfLiteTensor* TfLiteSignatureRunnerGetOutputTensor(
    const TfLiteSignatureRunner* signature_runner, const char* output_name);
TFL_CAPI_EXPORT extern void TfLiteSignatureRunnerDelete(TfLiteSignatureRunner* signature_runner);

/* ---- Tensors ---- */

TFL_CAPI_EXPORT extern TfLiteType TfLiteTensorType(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT extern int32_t TfLiteTensorNumDims(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT extern int32_t TfLiteTensorDim(const TfLiteTensor* tensor, int32_t dim_index);
TFL_CAPI_EXPORT extern size_t TfLiteTensorByteSize(const TfLiteTensor* tensor);

/* The elements, from AllocateTensors to the next one or TfLiteInterpreterDelete, aligned to 64 bytes. */
TFL_CAPI_EXPORT extern void* TfLiteTensorData(const TfLiteTensor* tensor);

TFL_CAPI_EXPORT extern const char* TfLiteTensorName(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT extern TfLiteQuantizationParams TfLiteTensorQuantizationParams(
    const TfLiteTensor* tensor);

/* Exactly as many bytes as the tensor has. */
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteTensorCopyFromBuffer(TfLiteTensor* tensor,
                                                               const void* input_data,
                                                               size_t input_data_size);
TFL_CAPI_EXPORT extern TfLiteStatus TfLiteTensorCopyToBuffer(const TfLiteTensor* output_tensor,
                                                             void* output_data,
                                                             size_t output_data_size);

#ifdef __cplusplus
}
#endif

#endif
