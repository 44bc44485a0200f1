/*
 * The same as tensorflow/lite/core/c/c_api.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NNHAL_TENSORFLOW_LITE_C_C_API_H
#define NNHAL_TENSORFLOW_LITE_C_C_API_H

#include "tensorflow/lite/core/c/c_api.h"

#endif
