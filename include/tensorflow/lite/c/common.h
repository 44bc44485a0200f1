/*
 * The same as tensorflow/lite/core/c/common.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NNHAL_TENSORFLOW_LITE_C_COMMON_H
#define NNHAL_TENSORFLOW_LITE_C_COMMON_H

#include "tensorflow/lite/core/c/common.h"

#endif
