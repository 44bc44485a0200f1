/*
 * The same as tensorflow/lite/core/c/c_api_types.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NNHAL_TENSORFLOW_COMPILER_MLIR_LITE_CORE_C_TFLITE_TYPES_H
#define NNHAL_TENSORFLOW_COMPILER_MLIR_LITE_CORE_C_TFLITE_TYPES_H

#include "tensorflow/lite/core/c/c_api_types.h"

#endif
