/*
 * A delegate that stands for what nnhal does anyway: adding it to an interpreter changes only the number of threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NNHAL_TENSORFLOW_LITE_DELEGATES_XNNPACK_XNNPACK_DELEGATE_H
#define NNHAL_TENSORFLOW_LITE_DELEGATES_XNNPACK_XNNPACK_DELEGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tensorflow/lite/core/c/common.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TFLITE_XNNPACK_DELEGATE_FLAG_QS8 0x00000001
#define TFLITE_XNNPACK_DELEGATE_FLAG_QU8 0x00000002
#define TFLITE_XNNPACK_DELEGATE_FLAG_FORCE_FP16 0x00000004

struct TfLiteXNNPackDelegateWeightsCache;

/* As in TensorFlow 2.12 and later, where newer fields come behind these. */
typedef struct {
    int32_t num_threads;
    uint32_t runtime_flags;
    uint32_t flags;
    struct TfLiteXNNPackDelegateWeightsCache* weights_cache;
    bool handle_variable_ops;
} TfLiteXNNPackDelegateOptions;

TFL_CAPI_EXPORT TfLiteXNNPackDelegateOptions TfLiteXNNPackDelegateOptionsDefault(void);
TFL_CAPI_EXPORT TfLiteDelegate* TfLiteXNNPackDelegateCreate(const TfLiteXNNPackDelegateOptions* options);
TFL_CAPI_EXPORT TfLiteDelegate* TfLiteXNNPackDelegateCreateWithThreadpool(
    const TfLiteXNNPackDelegateOptions* options, TfLiteContext* context);
TFL_CAPI_EXPORT void* TfLiteXNNPackDelegateGetThreadPool(TfLiteDelegate* delegate);
TFL_CAPI_EXPORT const TfLiteXNNPackDelegateOptions* TfLiteXNNPackDelegateGetOptions(
    TfLiteDelegate* delegate);
TFL_CAPI_EXPORT int TfLiteXNNPackDelegateGetFlags(TfLiteDelegate* delegate);
TFL_CAPI_EXPORT void TfLiteXNNPackDelegateDelete(TfLiteDelegate* delegate);

/* Always empty. */
TFL_CAPI_EXPORT struct TfLiteXNNPackDelegateWeightsCache* TfLiteXNNPackDelegateWeightsCacheCreate(void);
TFL_CAPI_EXPORT struct TfLiteXNNPackDelegateWeightsCache*
TfLiteXNNPackDelegateWeightsCacheCreateWithSize(size_t size);
TFL_CAPI_EXPORT bool TfLiteXNNPackDelegateWeightsCacheFinalizeSoft(
    struct TfLiteXNNPackDelegateWeightsCache* cache);
TFL_CAPI_EXPORT bool TfLiteXNNPackDelegateWeightsCacheFinalizeHard(
    struct TfLiteXNNPackDelegateWeightsCache* cache);
TFL_CAPI_EXPORT void TfLiteXNNPackDelegateWeightsCacheDelete(
    struct TfLiteXNNPackDelegateWeightsCache* cache);

#ifdef __cplusplus
}
#endif

#endif
