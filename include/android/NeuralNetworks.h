/*
 * The functions of the Neural Networks API (NNAPI) as libneuralnetworks.so of nnhal has them, up to
 * feature level 8. Names, arguments and meaning are those of the NDK of Android.
 *
 * Unless something else is said, a function answers a ResultCode; ANEURALNETWORKS_UNEXPECTED_NULL
 * if a pointer is null that must not be; ANEURALNETWORKS_BAD_STATE for an object that was freed and
 * ANEURALNETWORKS_BAD_DATA for a pointer that is none of the library's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NNHAL_ANDROID_NEURAL_NETWORKS_H
#define NNHAL_ANDROID_NEURAL_NETWORKS_H

#include "NeuralNetworksTypes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Devices ---- */

/* The feature level of the library, whatever its devices can do. */
int64_t ANeuralNetworks_getRuntimeFeatureLevel(void);

int ANeuralNetworks_getDeviceCount(uint32_t* numDevices);

/* The device at an index below the count. It is the same pointer each time, never freed. */
int ANeuralNetworks_getDevice(uint32_t devIndex, ANeuralNetworksDevice** device);

/* The device's name; the string is valid as long as the library is loaded. */
int ANeuralNetworksDevice_getName(const ANeuralNetworksDevice* device, const char** name);

/* A DeviceTypeCode. */
int ANeuralNetworksDevice_getType(const ANeuralNetworksDevice* device, int32_t* type);

/* Names this build of the device's driver; the string is valid as long as the library is loaded. */
int ANeuralNetworksDevice_getVersion(const ANeuralNetworksDevice* device, const char** version);

/* The newest FeatureLevelCode whose operations the device knows. */
int ANeuralNetworksDevice_getFeatureLevel(const ANeuralNetworksDevice* device,
                                          int64_t* featureLevel);

/* Waits until the device can be used. */
int ANeuralNetworksDevice_wait(const ANeuralNetworksDevice* device);

/*
 * For each operation of a finished model, in the order in which they were added, whether at least
 * one of the devices can run it. supportedOps has room for all operations.
 */
int ANeuralNetworksModel_getSupportedOperationsForDevices(
        const ANeuralNetworksModel* model, const ANeuralNetworksDevice* const* devices,
        uint32_t numDevices, bool* supportedOps);

/* ---- Models: operand by operand, operation by operation ---- */

int ANeuralNetworksModel_create(ANeuralNetworksModel** model);

/* Null is nothing to free, here and in the other functions that free. */
void ANeuralNetworksModel_free(ANeuralNetworksModel* model);

/*
 * Declares the model to be whole. After that nothing of it can be changed. What does not keep to
 * the operations' definitions is refused with ANEURALNETWORKS_BAD_DATA; the model is of no use
 * then.
 */
int ANeuralNetworksModel_finish(ANeuralNetworksModel* model);

/* Adds an operand. The first one has index 0, the next one 1, and so on. */
int ANeuralNetworksModel_addOperand(ANeuralNetworksModel* model,
                                    const ANeuralNetworksOperandType* type);

/*
 * Makes an operand constant; null and 0 say that an optional operand is left out. A value of up to
 * ANEURALNETWORKS_MAX_SIZE_OF_IMMEDIATELY_COPIED_VALUES bytes is copied at once. A longer one must
 * stay where it is, unchanged, until ANeuralNetworksModel_finish has returned (Android's library
 * asks for it to stay longer).
 */
int ANeuralNetworksModel_setOperandValue(ANeuralNetworksModel* model, int32_t index,
                                         const void* buffer, size_t length);

/* Scales for an operand of ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL; they are copied. */
int ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(
        ANeuralNetworksModel* model, int32_t index,
        const ANeuralNetworksSymmPerChannelQuantParams* channelQuant);

/* Makes an operand constant, its value a part of a memory that must not change any more. */
int ANeuralNetworksModel_setOperandValueFromMemory(ANeuralNetworksModel* model, int32_t index,
                                                   const ANeuralNetworksMemory* memory,
                                                   size_t offset, size_t length);

/* Gives an operand of ANEURALNETWORKS_MODEL its value: a finished model, for IF and WHILE. */
int ANeuralNetworksModel_setOperandValueFromModel(ANeuralNetworksModel* model, int32_t index,
                                                  const ANeuralNetworksModel* value);

/* Adds an operation that reads and writes operands by their indexes. Any order will do. */
int ANeuralNetworksModel_addOperation(ANeuralNetworksModel* model,
                                      ANeuralNetworksOperationType type, uint32_t inputCount,
                                      const uint32_t* inputs, uint32_t outputCount,
                                      const uint32_t* outputs);

/* Says which operands are the model's inputs and outputs, in the order that executions use. */
int ANeuralNetworksModel_identifyInputsAndOutputs(ANeuralNetworksModel* model, uint32_t inputCount,
                                                  const uint32_t* inputs, uint32_t outputCount,
                                                  const uint32_t* outputs);

/* Whether float32 may be computed with the range and precision of float16. */
int ANeuralNetworksModel_relaxComputationFloat32toFloat16(ANeuralNetworksModel* model, bool allow);

/* ---- Compilations ---- */

/* Begins to compile a finished model for all devices. The library chooses among them. */
int ANeuralNetworksCompilation_create(ANeuralNetworksModel* model,
                                      ANeuralNetworksCompilation** compilation);

/* The same for the devices of a list. If they fail, no other device takes over. */
int ANeuralNetworksCompilation_createForDevices(ANeuralNetworksModel* model,
                                                const ANeuralNetworksDevice* const* devices,
                                                uint32_t numDevices,
                                                ANeuralNetworksCompilation** compilation);

void ANeuralNetworksCompilation_free(ANeuralNetworksCompilation* compilation);

/* A PreferenceCode. Otherwise ANEURALNETWORKS_PREFER_FAST_SINGLE_ANSWER. */
int ANeuralNetworksCompilation_setPreference(ANeuralNetworksCompilation* compilation,
                                             int32_t preference);

/*
 * Keeps the result in files of a folder that is there, or takes it from there. The token has
 * ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN bytes; another model, preference, priority or device is
 * to have another one.
 */
int ANeuralNetworksCompilation_setCaching(ANeuralNetworksCompilation* compilation,
                                          const char* cacheDir, const uint8_t* token);

/* A PriorityCode. Otherwise ANEURALNETWORKS_PRIORITY_DEFAULT. */
int ANeuralNetworksCompilation_setPriority(ANeuralNetworksCompilation* compilation, int priority);

/*
 * How long ANeuralNetworksCompilation_finish may take, in nanoseconds; 0: as long as it needs. Only
 * for a compilation for exactly one device of a list.
 */
int ANeuralNetworksCompilation_setTimeout(ANeuralNetworksCompilation* compilation,
                                          uint64_t duration);

/* Compiles. After that nothing of the compilation can be changed. */
int ANeuralNetworksCompilation_finish(ANeuralNetworksCompilation* compilation);

/*
 * How an argument's memory is best laid out: it begins at a multiple of the alignment, and its
 * length is a multiple of the padding, both in bytes. Other layouts work too.
 */
int ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(
        const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* alignment);
int ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput(
        const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* padding);
int ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput(
        const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* alignment);
int ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput(
        const ANeuralNetworksCompilation* compilation, uint32_t index, uint32_t* padding);

/* ---- Executions ---- */

int ANeuralNetworksExecution_create(ANeuralNetworksCompilation* compilation,
                                    ANeuralNetworksExecution** execution);

/* An execution that is running is left alone: wait for its event first. */
void ANeuralNetworksExecution_free(ANeuralNetworksExecution* execution);

/*
 * Sets the input at an index of the model's list. type may be null, or say what the model left
 * open. null and 0 leave an optional input out. The buffer is the caller's: it must stay where it
 * is, unchanged, until the computation has ended.
 */
int ANeuralNetworksExecution_setInput(ANeuralNetworksExecution* execution, int32_t index,
                                      const ANeuralNetworksOperandType* type, const void* buffer,
                                      size_t length);

/* The same with a part of a memory; 0 and 0 mean all of one that a description made. */
int ANeuralNetworksExecution_setInputFromMemory(ANeuralNetworksExecution* execution, int32_t index,
                                                const ANeuralNetworksOperandType* type,
                                                const ANeuralNetworksMemory* memory, size_t offset,
                                                size_t length);

/*
 * Sets the place for the output at an index of the model's list. The buffer is the caller's: it
 * must stay where it is, and not be read, until the computation has ended.
 */
int ANeuralNetworksExecution_setOutput(ANeuralNetworksExecution* execution, int32_t index,
                                       const ANeuralNetworksOperandType* type, void* buffer,
                                       size_t length);

int ANeuralNetworksExecution_setOutputFromMemory(ANeuralNetworksExecution* execution, int32_t index,
                                                 const ANeuralNetworksOperandType* type,
                                                 const ANeuralNetworksMemory* memory, size_t offset,
                                                 size_t length);

/* Whether buffers may be longer than their values. To be said before the first one is set. */
int ANeuralNetworksExecution_enableInputAndOutputPadding(ANeuralNetworksExecution* execution,
                                                         bool enable);

/* Whether the execution may compute more than once, one computation after the other. */
int ANeuralNetworksExecution_setReusable(ANeuralNetworksExecution* execution, bool reusable);

/* Whether to measure times. Only for a compilation for exactly one device of a list. */
int ANeuralNetworksExecution_setMeasureTiming(ANeuralNetworksExecution* execution, bool measure);

/*
 * How long a computation may take, in nanoseconds; 0: as long as it needs. Only for a compilation
 * for exactly one device of a list.
 */
int ANeuralNetworksExecution_setTimeout(ANeuralNetworksExecution* execution, uint64_t duration);

/* How long each WHILE may take, in nanoseconds; at most the maximum below. */
int ANeuralNetworksExecution_setLoopTimeout(ANeuralNetworksExecution* execution, uint64_t duration);
uint64_t ANeuralNetworks_getDefaultLoopTimeout(void);
uint64_t ANeuralNetworks_getMaximumLoopTimeout(void);

/* Computes, and returns when it is done. */
int ANeuralNetworksExecution_compute(ANeuralNetworksExecution* execution);

/* Begins to compute, and returns; the event tells when it is done and how it went. */
int ANeuralNetworksExecution_startCompute(ANeuralNetworksExecution* execution,
                                          ANeuralNetworksEvent** event);

/*
 * Begins to compute once all dependencies are met, and returns. duration is how long it may take
 * after that, in nanoseconds; 0: as long as it needs. All dimensions of outputs must be known. The
 * execution has ended when the event was waited for or freed.
 */
int ANeuralNetworksExecution_startComputeWithDependencies(
        ANeuralNetworksExecution* execution, const ANeuralNetworksEvent* const* dependencies,
        uint32_t num_dependencies, uint64_t duration, ANeuralNetworksEvent** event);

/*
 * What is known of an output after a computation that succeeded, or that failed with
 * ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE; the latter is then the answer for outputs that need a
 * longer buffer.
 */
int ANeuralNetworksExecution_getOutputOperandRank(ANeuralNetworksExecution* execution,
                                                  int32_t index, uint32_t* rank);
int ANeuralNetworksExecution_getOutputOperandDimensions(ANeuralNetworksExecution* execution,
                                                        int32_t index, uint32_t* dimensions);

/* A time in nanoseconds by DurationCode; UINT64_MAX if the device does not measure it. */
int ANeuralNetworksExecution_getDuration(const ANeuralNetworksExecution* execution,
                                         int32_t durationCode, uint64_t* duration);

/* ---- Bursts: many computations in close succession ---- */

int ANeuralNetworksBurst_create(ANeuralNetworksCompilation* compilation,
                                ANeuralNetworksBurst** burst);
void ANeuralNetworksBurst_free(ANeuralNetworksBurst* burst);

/* Computes, and returns when it is done. A burst computes one execution at a time. */
int ANeuralNetworksExecution_burstCompute(ANeuralNetworksExecution* execution,
                                          ANeuralNetworksBurst* burst);

/* ---- Events ---- */

/* Waits for the computation to end and answers how it went. */
int ANeuralNetworksEvent_wait(ANeuralNetworksEvent* event);

/* Waits for the computation to end, too. */
void ANeuralNetworksEvent_free(ANeuralNetworksEvent* event);

/* An event that happens when a sync fence signals. The descriptor stays the caller's. */
int ANeuralNetworksEvent_createFromSyncFenceFd(int sync_fence_fd, ANeuralNetworksEvent** event);

/*
 * A descriptor that becomes readable when the event has happened, to be closed by the caller;
 * ANEURALNETWORKS_BAD_DATA and -1 for events without one.
 */
int ANeuralNetworksEvent_getSyncFenceFd(const ANeuralNetworksEvent* event, int* sync_fence_fd);

/* ---- Memory that is shared with devices ---- */

/*
 * A part of a file as memory. protect is a combination of PROT_READ and PROT_WRITE of <sys/mman.h>.
 * The descriptor is duplicated and may be closed afterwards. The file must not end before the part
 * does: what uses the memory while it does so answers ANEURALNETWORKS_BAD_DATA.
 */
int ANeuralNetworksMemory_createFromFd(size_t size, int protect, int fd, size_t offset,
                                       ANeuralNetworksMemory** memory);

/* There are no hardware buffers outside of Android: answers ANEURALNETWORKS_OP_FAILED. */
int ANeuralNetworksMemory_createFromAHardwareBuffer(const AHardwareBuffer* ahwb,
                                                    ANeuralNetworksMemory** memory);

void ANeuralNetworksMemory_free(ANeuralNetworksMemory* memory);

/* Copies all of one memory into another. At least one of them may be the device's own. */
int ANeuralNetworksMemory_copy(const ANeuralNetworksMemory* src, const ANeuralNetworksMemory* dst);

/* Describes a memory of the device's own by what it is to be used for. */
int ANeuralNetworksMemoryDesc_create(ANeuralNetworksMemoryDesc** desc);
void ANeuralNetworksMemoryDesc_free(ANeuralNetworksMemoryDesc* desc);

/* It will be an input of that compilation; frequency, above 0 and at most 1: how likely. */
int ANeuralNetworksMemoryDesc_addInputRole(ANeuralNetworksMemoryDesc* desc,
                                           const ANeuralNetworksCompilation* compilation,
                                           uint32_t index, float frequency);
int ANeuralNetworksMemoryDesc_addOutputRole(ANeuralNetworksMemoryDesc* desc,
                                            const ANeuralNetworksCompilation* compilation,
                                            uint32_t index, float frequency);

/* Its dimensions, where the model leaves them open. */
int ANeuralNetworksMemoryDesc_setDimensions(ANeuralNetworksMemoryDesc* desc, uint32_t rank,
                                            const uint32_t* dimensions);
int ANeuralNetworksMemoryDesc_finish(ANeuralNetworksMemoryDesc* desc);

/* A memory as described; as many as are wanted. */
int ANeuralNetworksMemory_createFromDesc(const ANeuralNetworksMemoryDesc* desc,
                                         ANeuralNetworksMemory** memory);

#ifdef __cplusplus
}
#endif

#endif
