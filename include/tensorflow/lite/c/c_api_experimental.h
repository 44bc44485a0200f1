/*
 * The same as tensorflow/lite/core/c/c_api_experimental.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NNHAL_TENSORFLOW_LITE_C_C_API_EXPERIMENTAL_H
#define NNHAL_TENSORFLOW_LITE_C_C_API_EXPERIMENTAL_H

#include "tensorflow/lite/core/c/c_api_experimental.h"

#endif
