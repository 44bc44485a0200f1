/*
 * The types and constants of the Neural Networks API (NNAPI) as libneuralnetworks.so of nnhal has
 * them. Names and numbers are those of Android's NDK, so a program that was written against
 * <android/NeuralNetworks.h> compiles against this file unchanged.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NNHAL_ANDROID_NEURAL_NETWORKS_TYPES_H
#define NNHAL_ANDROID_NEURAL_NETWORKS_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Types of operands. A quantized value stands for a real number:
 * real = scale * (stored - zeroPoint).
 */
typedef enum {
    /* Feature level 1. */
    ANEURALNETWORKS_FLOAT32 = 0,
    ANEURALNETWORKS_INT32 = 1,
    ANEURALNETWORKS_UINT32 = 2,
    ANEURALNETWORKS_TENSOR_FLOAT32 = 3,
    ANEURALNETWORKS_TENSOR_INT32 = 4,
    /* One byte from 0 to 255; scale above 0, zeroPoint from 0 to 255. */
    ANEURALNETWORKS_TENSOR_QUANT8_ASYMM = 5,
    /* Feature level 3. */
    /* One byte; 0 is false, everything else true. */
    ANEURALNETWORKS_BOOL = 6,
    /* Two bytes from -32768 to 32767; scale above 0, zeroPoint 0. */
    ANEURALNETWORKS_TENSOR_QUANT16_SYMM = 7,
    ANEURALNETWORKS_TENSOR_FLOAT16 = 8,
    /* One byte an element; 0 is false, everything else true. */
    ANEURALNETWORKS_TENSOR_BOOL8 = 9,
    ANEURALNETWORKS_FLOAT16 = 10,
    /*
     * One byte from -127 to 127, with a scale for each slice along one dimension:
     * ANeuralNetworksModel_setOperandSymmPerChannelQuantParams.
     */
    ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL = 11,
    /* Two bytes from 0 to 65535; scale above 0, zeroPoint from 0 to 65535. */
    ANEURALNETWORKS_TENSOR_QUANT16_ASYMM = 12,
    /* One byte from -128 to 127; scale above 0, zeroPoint 0. */
    ANEURALNETWORKS_TENSOR_QUANT8_SYMM = 13,
    /* Feature level 4. */
    /* One byte from -128 to 127; scale above 0, zeroPoint from -128 to 127. */
    ANEURALNETWORKS_TENSOR_QUANT8_ASYMM_SIGNED = 14,
    /* A model, for IF and WHILE: ANeuralNetworksModel_setOperandValueFromModel. */
    ANEURALNETWORKS_MODEL = 15,
} OperandCode;

/*
 * Operations. What each one computes, its arguments and the types that it takes are listed in
 * docs/operations.md.
 */
typedef enum {
    /* Feature level 1. */
    ANEURALNETWORKS_ADD = 0,
    ANEURALNETWORKS_AVERAGE_POOL_2D = 1,
    ANEURALNETWORKS_CONCATENATION = 2,
    ANEURALNETWORKS_CONV_2D = 3,
    ANEURALNETWORKS_DEPTHWISE_CONV_2D = 4,
    ANEURALNETWORKS_DEPTH_TO_SPACE = 5,
    ANEURALNETWORKS_DEQUANTIZE = 6,
    ANEURALNETWORKS_EMBEDDING_LOOKUP = 7,
    ANEURALNETWORKS_FLOOR = 8,
    ANEURALNETWORKS_FULLY_CONNECTED = 9,
    ANEURALNETWORKS_HASHTABLE_LOOKUP = 10,
    ANEURALNETWORKS_L2_NORMALIZATION = 11,
    ANEURALNETWORKS_L2_POOL_2D = 12,
    ANEURALNETWORKS_LOCAL_RESPONSE_NORMALIZATION = 13,
    ANEURALNETWORKS_LOGISTIC = 14,
    ANEURALNETWORKS_LSH_PROJECTION = 15,
    ANEURALNETWORKS_LSTM = 16,
    ANEURALNETWORKS_MAX_POOL_2D = 17,
    ANEURALNETWORKS_MUL = 18,
    ANEURALNETWORKS_RELU = 19,
    ANEURALNETWORKS_RELU1 = 20,
    ANEURALNETWORKS_RELU6 = 21,
    ANEURALNETWORKS_RESHAPE = 22,
    ANEURALNETWORKS_RESIZE_BILINEAR = 23,
    ANEURALNETWORKS_RNN = 24,
    ANEURALNETWORKS_SOFTMAX = 25,
    ANEURALNETWORKS_SPACE_TO_DEPTH = 26,
    ANEURALNETWORKS_SVDF = 27,
    ANEURALNETWORKS_TANH = 28,
    /* Feature level 2. */
    ANEURALNETWORKS_BATCH_TO_SPACE_ND = 29,
    ANEURALNETWORKS_DIV = 30,
    ANEURALNETWORKS_MEAN = 31,
    ANEURALNETWORKS_PAD = 32,
    ANEURALNETWORKS_SPACE_TO_BATCH_ND = 33,
    ANEURALNETWORKS_SQUEEZE = 34,
    ANEURALNETWORKS_STRIDED_SLICE = 35,
    ANEURALNETWORKS_SUB = 36,
    ANEURALNETWORKS_TRANSPOSE = 37,
    /* Feature level 3. */
    ANEURALNETWORKS_ABS = 38,
    ANEURALNETWORKS_ARGMAX = 39,
    ANEURALNETWORKS_ARGMIN = 40,
    ANEURALNETWORKS_AXIS_ALIGNED_BBOX_TRANSFORM = 41,
    ANEURALNETWORKS_BIDIRECTIONAL_SEQUENCE_LSTM = 42,
    ANEURALNETWORKS_BIDIRECTIONAL_SEQUENCE_RNN = 43,
    ANEURALNETWORKS_BOX_WITH_NMS_LIMIT = 44,
    ANEURALNETWORKS_CAST = 45,
    ANEURALNETWORKS_CHANNEL_SHUFFLE = 46,
    ANEURALNETWORKS_DETECTION_POSTPROCESSING = 47,
    ANEURALNETWORKS_EQUAL = 48,
    ANEURALNETWORKS_EXP = 49,
    ANEURALNETWORKS_EXPAND_DIMS = 50,
    ANEURALNETWORKS_GATHER = 51,
    ANEURALNETWORKS_GENERATE_PROPOSALS = 52,
    ANEURALNETWORKS_GREATER = 53,
    ANEURALNETWORKS_GREATER_EQUAL = 54,
    ANEURALNETWORKS_GROUPED_CONV_2D = 55,
    ANEURALNETWORKS_HEATMAP_MAX_KEYPOINT = 56,
    ANEURALNETWORKS_INSTANCE_NORMALIZATION = 57,
    ANEURALNETWORKS_LESS = 58,
    ANEURALNETWORKS_LESS_EQUAL = 59,
    ANEURALNETWORKS_LOG = 60,
    ANEURALNETWORKS_LOGICAL_AND = 61,
    ANEURALNETWORKS_LOGICAL_NOT = 62,
    ANEURALNETWORKS_LOGICAL_OR = 63,
    ANEURALNETWORKS_LOG_SOFTMAX = 64,
    ANEURALNETWORKS_MAXIMUM = 65,
    ANEURALNETWORKS_MINIMUM = 66,
    ANEURALNETWORKS_NEG = 67,
    ANEURALNETWORKS_NOT_EQUAL = 68,
    ANEURALNETWORKS_PAD_V2 = 69,
    ANEURALNETWORKS_POW = 70,
    ANEURALNETWORKS_PRELU = 71,
    ANEURALNETWORKS_QUANTIZE = 72,
    ANEURALNETWORKS_QUANTIZED_16BIT_LSTM = 73,
    ANEURALNETWORKS_RANDOM_MULTINOMIAL = 74,
    ANEURALNETWORKS_REDUCE_ALL = 75,
    ANEURALNETWORKS_REDUCE_ANY = 76,
    ANEURALNETWORKS_REDUCE_MAX = 77,
    ANEURALNETWORKS_REDUCE_MIN = 78,
    ANEURALNETWORKS_REDUCE_PROD = 79,
    ANEURALNETWORKS_REDUCE_SUM = 80,
    ANEURALNETWORKS_ROI_ALIGN = 81,
    ANEURALNETWORKS_ROI_POOLING = 82,
    ANEURALNETWORKS_RSQRT = 83,
    ANEURALNETWORKS_SELECT = 84,
    ANEURALNETWORKS_SIN = 85,
    ANEURALNETWORKS_SLICE = 86,
    ANEURALNETWORKS_SPLIT = 87,
    ANEURALNETWORKS_SQRT = 88,
    ANEURALNETWORKS_TILE = 89,
    ANEURALNETWORKS_TOPK_V2 = 90,
    ANEURALNETWORKS_TRANSPOSE_CONV_2D = 91,
    ANEURALNETWORKS_UNIDIRECTIONAL_SEQUENCE_LSTM = 92,
    ANEURALNETWORKS_UNIDIRECTIONAL_SEQUENCE_RNN = 93,
    ANEURALNETWORKS_RESIZE_NEAREST_NEIGHBOR = 94,
    /* Feature level 4. */
    ANEURALNETWORKS_QUANTIZED_LSTM = 95,
    ANEURALNETWORKS_IF = 96,
    ANEURALNETWORKS_WHILE = 97,
    ANEURALNETWORKS_ELU = 98,
    ANEURALNETWORKS_HARD_SWISH = 99,
    ANEURALNETWORKS_FILL = 100,
    ANEURALNETWORKS_RANK = 101,
    /* Feature level 6. */
    ANEURALNETWORKS_BATCH_MATMUL = 102,
    ANEURALNETWORKS_PACK = 103,
    /* Feature level 7. */
    ANEURALNETWORKS_MIRROR_PAD = 104,
    ANEURALNETWORKS_REVERSE = 105,
} OperationCode;

/* What an operation does to its result before it hands it on. */
typedef enum {
    ANEURALNETWORKS_FUSED_NONE = 0,
    /* max(0, x) */
    ANEURALNETWORKS_FUSED_RELU = 1,
    /* min(1, max(-1, x)) */
    ANEURALNETWORKS_FUSED_RELU1 = 2,
    /* min(6, max(0, x)) */
    ANEURALNETWORKS_FUSED_RELU6 = 3,
} FuseCode;

/* Padding of convolutions and pools that is not given number by number. */
typedef enum {
    /* As much as makes output length = ceil(input length / stride), the odd one at the end. */
    ANEURALNETWORKS_PADDING_SAME = 1,
    /* None: a window that does not fit is left out. */
    ANEURALNETWORKS_PADDING_VALID = 2,
} PaddingCode;

/* What a compilation is to be good at. */
typedef enum {
    ANEURALNETWORKS_PREFER_LOW_POWER = 0,
    ANEURALNETWORKS_PREFER_FAST_SINGLE_ANSWER = 1,
    ANEURALNETWORKS_PREFER_SUSTAINED_SPEED = 2,
} PreferenceCode;

/* Kinds of devices. */
typedef enum {
    ANEURALNETWORKS_DEVICE_UNKNOWN = 0,
    ANEURALNETWORKS_DEVICE_OTHER = 1,
    ANEURALNETWORKS_DEVICE_CPU = 2,
    ANEURALNETWORKS_DEVICE_GPU = 3,
    ANEURALNETWORKS_DEVICE_ACCELERATOR = 4,
} DeviceTypeCode;

/* Versions of the API. Up to level 5 the number is that of the Android release that brought it. */
typedef enum {
    ANEURALNETWORKS_FEATURE_LEVEL_1 = 27,
    ANEURALNETWORKS_FEATURE_LEVEL_2 = 28,
    ANEURALNETWORKS_FEATURE_LEVEL_3 = 29,
    ANEURALNETWORKS_FEATURE_LEVEL_4 = 30,
    ANEURALNETWORKS_FEATURE_LEVEL_5 = 31,
    ANEURALNETWORKS_FEATURE_LEVEL_6 = 1000006,
    ANEURALNETWORKS_FEATURE_LEVEL_7 = 1000007,
    ANEURALNETWORKS_FEATURE_LEVEL_8 = 1000008,
} FeatureLevelCode;

/* What functions answer. nnhal_lastError() of <nnhal.h> has the sentence behind a failure. */
typedef enum {
    ANEURALNETWORKS_NO_ERROR = 0,
    ANEURALNETWORKS_OUT_OF_MEMORY = 1,
    ANEURALNETWORKS_INCOMPLETE = 2,
    /* A pointer is null that must not be. */
    ANEURALNETWORKS_UNEXPECTED_NULL = 3,
    /* An argument has a wrong value. */
    ANEURALNETWORKS_BAD_DATA = 4,
    /* It was tried and went wrong. */
    ANEURALNETWORKS_OP_FAILED = 5,
    /* The object is not in a state in which this can be called. */
    ANEURALNETWORKS_BAD_STATE = 6,
    ANEURALNETWORKS_UNMAPPABLE = 7,
    /* An output's buffer is too small; ANeuralNetworksExecution_getOutputOperandDimensions tells
     * what it must hold. */
    ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE = 8,
    ANEURALNETWORKS_UNAVAILABLE_DEVICE = 9,
    /* It took too long; trying again may help. */
    ANEURALNETWORKS_MISSED_DEADLINE_TRANSIENT = 10,
    /* It takes too long; trying again will not help. */
    ANEURALNETWORKS_MISSED_DEADLINE_PERSISTENT = 11,
    /* Something ran out; trying again may help. */
    ANEURALNETWORKS_RESOURCE_EXHAUSTED_TRANSIENT = 12,
    /* Something runs out; trying again will not help. */
    ANEURALNETWORKS_RESOURCE_EXHAUSTED_PERSISTENT = 13,
    /* The device's process died. */
    ANEURALNETWORKS_DEAD_OBJECT = 14,
} ResultCode;

/* Longest value, in bytes, that ANeuralNetworksModel_setOperandValue always copies at once. */
enum { ANEURALNETWORKS_MAX_SIZE_OF_IMMEDIATELY_COPIED_VALUES = 128 };

/* Bytes that name a compilation in a cache. */
enum { ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN = 32 };

/* Which time ANeuralNetworksExecution_getDuration is asked for. */
typedef enum {
    /* On the device alone. */
    ANEURALNETWORKS_DURATION_ON_HARDWARE = 0,
    /* In the device's driver, which has the time on the device in it. */
    ANEURALNETWORKS_DURATION_IN_DRIVER = 1,
    /* The same two from the moment when the last dependency was met. */
    ANEURALNETWORKS_FENCED_DURATION_ON_HARDWARE = 2,
    ANEURALNETWORKS_FENCED_DURATION_IN_DRIVER = 3,
} DurationCode;

/* Rank of a compilation's executions among those of the same program. */
typedef enum {
    ANEURALNETWORKS_PRIORITY_LOW = 90,
    ANEURALNETWORKS_PRIORITY_MEDIUM = 100,
    ANEURALNETWORKS_PRIORITY_HIGH = 110,
    ANEURALNETWORKS_PRIORITY_DEFAULT = ANEURALNETWORKS_PRIORITY_MEDIUM,
} PriorityCode;

/*
 * The objects. All of them may be used from any thread. A model, a compilation, an execution or a
 * description that is still being set up is to be set up by one thread at a time; the library
 * serializes threads that do not keep to that. Freeing an object that others were made from is fine:
 * what they need of it is kept.
 *
 * The pointers are names, they lead nowhere: do not follow them. One that was freed, or that the
 * library never gave out, is refused with a result code.
 */
typedef struct ANeuralNetworksMemory ANeuralNetworksMemory;
typedef struct ANeuralNetworksModel ANeuralNetworksModel;
typedef struct ANeuralNetworksCompilation ANeuralNetworksCompilation;
typedef struct ANeuralNetworksExecution ANeuralNetworksExecution;
typedef struct ANeuralNetworksBurst ANeuralNetworksBurst;
typedef struct ANeuralNetworksEvent ANeuralNetworksEvent;
typedef struct ANeuralNetworksDevice ANeuralNetworksDevice;
typedef struct ANeuralNetworksMemoryDesc ANeuralNetworksMemoryDesc;

/* Scales of an operand of ANEURALNETWORKS_TENSOR_QUANT8_SYMM_PER_CHANNEL. */
typedef struct ANeuralNetworksSymmPerChannelQuantParams {
    /* The dimension whose slices have scales of their own. */
    uint32_t channelDim;
    /* Number of scales: the length of that dimension. */
    uint32_t scaleCount;
    /* The scales, each above 0. */
    const float* scales;
} ANeuralNetworksSymmPerChannelQuantParams;

/* What an operand is. */
typedef struct ANeuralNetworksOperandType {
    /* An OperandCode, or what ANeuralNetworksModel_getExtensionOperandType gave. */
    int32_t type;
    /* Number of dimensions. 0 for scalars; for tensors 0 says that not even the rank is known. */
    uint32_t dimensionCount;
    /* Their lengths, 0 where one is not known yet; null if dimensionCount is 0. */
    const uint32_t* dimensions;
    /* For quantized types, else 0. */
    float scale;
    int32_t zeroPoint;
} ANeuralNetworksOperandType;

typedef int32_t ANeuralNetworksOperationType;

/* Memory of Android's graphics system. On other systems there is none. */
typedef struct AHardwareBuffer AHardwareBuffer;

#ifdef __cplusplus
}
#endif

#endif
