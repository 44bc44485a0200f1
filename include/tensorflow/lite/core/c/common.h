/*
 * The same as tensorflow/lite/c/common.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NNHAL_TENSORFLOW_LITE_CORE_C_COMMON_H
#define NNHAL_TENSORFLOW_LITE_CORE_C_COMMON_H

#include "tensorflow/lite/c/common.h"

#endif
