/*
 * Operators of the program, as far as it describes them. None is called, so functions that it sets are not kept.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NNHAL_TENSORFLOW_LITE_CORE_C_OPERATOR_H
#define NNHAL_TENSORFLOW_LITE_CORE_C_OPERATOR_H

#include <stdint.h>
#include <stdlib.h>
#include "tensorflow/lite/builtin_ops.h"
#include "tensorflow/lite/core/async/c/types.h"
#include "tensorflow/lite/core/c/c_api_types.h"

#ifdef __cplusplus
extern "C" {
#endif

TFL_CAPI_EXPORT extern TfLiteOperator* TfLiteOperatorCreate(TfLiteBuiltinOperator builtin_code,
                                                            const char* custom_name, int version,
                                                            void* user_data);
TFL_CAPI_EXPORT extern void TfLiteOperatorDelete(TfLiteOperator* registration);
TFL_CAPI_EXPORT extern TfLiteBuiltinOperator TfLiteOperatorGetBuiltInCode(
    const TfLiteOperator* registration);
TFL_CAPI_EXPORT extern const char* TfLiteOperatorGetCustomName(const TfLiteOperator* registration);
TFL_CAPI_EXPORT extern int TfLiteOperatorGetVersion(const TfLiteOperator* registration);
TFL_CAPI_EXPORT extern void* TfLiteOperatorGetUserData(const TfLiteOperator* registration);
TFL_CAPI_EXPORT extern void TfLiteOperatorSetInit(TfLiteOperator* registration,
                                                  void* (*init)(TfLiteOpaqueContext* context,
                                                                const char* buffer, size_t length));
TFL_CAPI_EXPORT extern void TfLiteOperatorSetFree(TfLiteOperator* registration,
                                                  void (*free)(TfLiteOpaqueContext* context,
                                                               void* data));
TFL_CAPI_EXPORT extern void TfLiteOperatorSetPrepare(
    TfLiteOperator* registration,
    TfLiteStatus (*prepare)(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node));
TFL_CAPI_EXPORT extern void TfLiteOperatorSetInvoke(
    TfLiteOperator* registration,
    TfLiteStatus (*invoke)(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node));
TFL_CAPI_EXPORT extern void TfLiteOperatorSetAsyncKernel(
    TfLiteOperator* registration,
    struct TfLiteAsyncKernel* (*async_kernel)(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node));
TFL_CAPI_EXPORT extern void TfLiteOperatorSetInplaceOperator(TfLiteOperator* registration,
                                                             uint64_t inplace_operator);

#ifdef __cplusplus
}
#endif

#endif
