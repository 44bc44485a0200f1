/*
 * What libneuralnetworks.so of nnhal has beyond the Neural Networks API of Android.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NNHAL_H
#define NNHAL_H

#include <android/NeuralNetworks.h>
#include <android/NeuralNetworksExtensions.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Why this thread's last failing call failed, as a sentence: the function, the result code, what was
 * found and what was expected. Empty if none failed. Valid until the thread's next failing call.
 */
const char* nnhal_lastError(void);

/* The name of a ResultCode without ANEURALNETWORKS_; "UNKNOWN" for other numbers. */
const char* nnhal_resultName(int resultCode);

#ifdef __cplusplus
}
#endif

#endif
