/*
 * Names of the asynchronous API. Nothing of it runs here: it needs delegates of the program.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NNHAL_TENSORFLOW_LITE_CORE_ASYNC_C_TYPES_H
#define NNHAL_TENSORFLOW_LITE_CORE_ASYNC_C_TYPES_H


#ifdef __cplusplus
extern "C" {
#endif

typedef struct TfLiteAsyncKernel TfLiteAsyncKernel;
typedef struct TfLiteExecutionTask TfLiteExecutionTask;

#ifdef __cplusplus
}
#endif

#endif
