/*
 * The same as tensorflow/lite/core/c/c_api_opaque.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NNHAL_TENSORFLOW_LITE_C_C_API_OPAQUE_H
#define NNHAL_TENSORFLOW_LITE_C_C_API_OPAQUE_H

#include "tensorflow/lite/core/c/c_api_opaque.h"

#endif
