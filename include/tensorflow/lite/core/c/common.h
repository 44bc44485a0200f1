/*
 * Structures of the C API of TensorFlow Lite that programs read themselves, with their classic layout.
 *
 * The contexts, nodes and registrations of kernels are there so that programs with kernels or delegates of their own
 * compile; this library calls none of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef NNHAL_TENSORFLOW_LITE_CORE_C_COMMON_H
#define NNHAL_TENSORFLOW_LITE_CORE_C_COMMON_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "tensorflow/lite/core/c/c_api_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct TfLiteAsyncKernel;
struct TfLiteOpaqueDelegateBuilder;
typedef struct TfLiteContext TfLiteContext;
typedef struct TfLiteNode TfLiteNode;
typedef struct TfLiteRegistration TfLiteRegistration;
typedef struct TfLiteRegistration_V1 TfLiteRegistration_V1;
typedef struct TfLiteRegistration_V2 TfLiteRegistration_V2;
typedef struct TfLiteRegistration_V3 TfLiteRegistration_V3;

/* In place of the index of a tensor: there is none. */
#define kTfLiteOptionalTensor (-1)

/* ---- Arrays ---- */

/* Integers with their count; made by TfLiteIntArrayCreate or part of a tensor. */
typedef struct TfLiteIntArray {
    int size;
    int data[];
} TfLiteIntArray;

typedef struct TfLiteFloatArray {
    int size;
    float data[];
} TfLiteFloatArray;

/* Bytes that an array with this number of elements takes, 0 for a negative one. */
size_t TfLiteIntArrayGetSizeInBytes(int size);

/* An array whose elements are not set; null without memory. */
TfLiteIntArray* TfLiteIntArrayCreate(int size);

int TfLiteIntArrayEqual(const TfLiteIntArray* a, const TfLiteIntArray* b);
int TfLiteIntArrayEqualsArray(const TfLiteIntArray* a, int b_size, const int b_data[]);

/* A copy; null of null. */
TfLiteIntArray* TfLiteIntArrayCopy(const TfLiteIntArray* src);

void TfLiteIntArrayFree(TfLiteIntArray* a);

int TfLiteFloatArrayGetSizeInBytes(int size);
TfLiteFloatArray* TfLiteFloatArrayCreate(int size);
TfLiteFloatArray* TfLiteFloatArrayCopy(const TfLiteFloatArray* src);
void TfLiteFloatArrayFree(TfLiteFloatArray* a);

/* ---- Elements ---- */

typedef struct TfLiteComplex64 {
    float re, im;
} TfLiteComplex64;

typedef struct TfLiteComplex128 {
    double re, im;
} TfLiteComplex128;

typedef struct TfLiteFloat16 {
    uint16_t data;
} TfLiteFloat16;

typedef struct TfLiteBFloat16 {
    uint16_t data;
} TfLiteBFloat16;

/* The type in capital letters. */
const char* TfLiteTypeGetName(TfLiteType type);

typedef union TfLitePtrUnion {
    int32_t* i32;
    uint32_t* u32;
    int64_t* i64;
    uint64_t* u64;
    float* f;
    TfLiteFloat16* f16;
    TfLiteBFloat16* bf16;
    double* f64;
    char* raw;
    const char* raw_const;
    uint8_t* uint8;
    bool* b;
    int16_t* i16;
    uint16_t* ui16;
    TfLiteComplex64* c64;
    TfLiteComplex128* c128;
    int8_t* int8;
    void* data;
} TfLitePtrUnion;

/* ---- Quantization ---- */

typedef enum TfLiteQuantizationType {
    kTfLiteNoQuantization = 0,
    kTfLiteAffineQuantization = 1
} TfLiteQuantizationType;

/* With kTfLiteAffineQuantization, params leads to a TfLiteAffineQuantization. */
typedef struct TfLiteQuantization {
    TfLiteQuantizationType type;
    void* params;
} TfLiteQuantization;

/* One scale and zero point, or one of each by index of an axis. */
typedef struct TfLiteAffineQuantization {
    TfLiteFloatArray* scale;
    TfLiteIntArray* zero_point;
    int32_t quantized_dimension;
} TfLiteAffineQuantization;

/* ---- Tensors ---- */

typedef enum TfLiteAllocationType {
    kTfLiteMemNone = 0,
    kTfLiteMmapRo,             /* a constant of the file */
    kTfLiteArenaRw,            /* memory from AllocateTensors on */
    kTfLiteArenaRwPersistent,  /* the same, of a variable */
    kTfLiteDynamic,            /* memory from the first Invoke on, which only says how much */
    kTfLitePersistentRo,
    kTfLiteCustom,             /* the program's own memory */
    kTfLiteVariantObject,
    kTfLiteNonCpu
} TfLiteAllocationType;

typedef enum TfLiteAllocationStrategy {
    kTfLiteAllocationStrategyUnknown,
    kTfLiteAllocationStrategyNone,
    kTfLiteAllocationStrategyMMap,
    kTfLiteAllocationStrategyArena,
    kTfLiteAllocationStrategyMalloc,
    kTfLiteAllocationStrategyNew
} TfLiteAllocationStrategy;

typedef enum TfLiteRunStability {
    kTfLiteRunStabilityUnknown,
    kTfLiteRunStabilityUnstable,
    kTfLiteRunStabilitySingleRun,
    kTfLiteRunStabilityAcrossRuns
} TfLiteRunStability;

typedef enum TfLiteRunStep {
    kTfLiteRunStepUnknown,
    kTfLiteRunStepInit,
    kTfLiteRunStepPrepare,
    kTfLiteRunStepEval
} TfLiteRunStep;

typedef int TfLiteBufferHandle;
enum { kTfLiteNullBufferHandle = -1 };

typedef struct TfLiteDimensionMetadata {
    TfLiteDimensionType format;
    int dense_size;
    TfLiteIntArray* array_segments;
    TfLiteIntArray* array_indices;
} TfLiteDimensionMetadata;

typedef struct TfLiteSparsity {
    TfLiteIntArray* traversal_order;
    TfLiteIntArray* block_map;
    TfLiteDimensionMetadata* dim_metadata;
    int dim_metadata_size;
} TfLiteSparsity;

typedef struct TfLiteCustomAllocation {
    void* data;
    size_t bytes;
} TfLiteCustomAllocation;

typedef enum TfLiteCustomAllocationFlags {
    kTfLiteCustomAllocationFlagsNone = 0,
    kTfLiteCustomAllocationFlagsSkipAlignCheck = 1
} TfLiteCustomAllocationFlags;

/*
 * A tensor. It belongs to its interpreter, and so does everything that it leads to, until AllocateTensors or
 * TfLiteInterpreterDelete. After that it is empty, and functions that take it fail.
 */
struct TfLiteTensor {
    TfLiteType type;
    TfLitePtrUnion data;             /* begins at a multiple of 64 bytes; null where there are no elements */
    TfLiteIntArray* dims;
    TfLiteQuantizationParams params;
    TfLiteAllocationType allocation_type;
    size_t bytes;
    const void* allocation;          /* null here */
    const char* name;
    struct TfLiteDelegate* delegate; /* null here */
    TfLiteBufferHandle buffer_handle;
    bool data_is_stale;              /* false here */
    bool is_variable;
    TfLiteQuantization quantization;
    TfLiteSparsity* sparsity;        /* null here */
    const TfLiteIntArray* dims_signature; /* -1 where the file leaves a length open */
};

/* For structures of the program's own; a tensor of an interpreter is refused. */
void TfLiteTensorDataFree(TfLiteTensor* t);
void TfLiteQuantizationFree(TfLiteQuantization* quantization);
void TfLiteSparsityFree(TfLiteSparsity* sparsity);
void TfLiteTensorFree(TfLiteTensor* t);
void TfLiteTensorReset(TfLiteType type, const char* name, TfLiteIntArray* dims,
                       TfLiteQuantizationParams quantization, char* buffer, size_t size,
                       TfLiteAllocationType allocation_type, const void* allocation, bool is_variable,
                       TfLiteTensor* tensor);
TfLiteStatus TfLiteTensorCopy(const TfLiteTensor* src, TfLiteTensor* dst);
TfLiteStatus TfLiteTensorResizeMaybeCopy(size_t num_bytes, TfLiteTensor* tensor, bool preserve_data);
TfLiteStatus TfLiteTensorRealloc(size_t num_bytes, TfLiteTensor* tensor);

/* The shape with -1 where the file leaves a length open; the shape itself where it leaves none. */
const TfLiteIntArray* TfLiteTensorGetDimsSignature(const TfLiteTensor* t);

TfLiteAllocationStrategy TfLiteTensorGetAllocationStrategy(const TfLiteTensor* t);
TfLiteRunStability TfLiteTensorGetBufferAddressStability(const TfLiteTensor* t);
TfLiteRunStability TfLiteTensorGetDataStability(const TfLiteTensor* t);
TfLiteRunStep TfLiteTensorGetDataKnownStep(const TfLiteTensor* t);
TfLiteRunStep TfLiteTensorGetShapeKnownStep(const TfLiteTensor* t);

/* A tensor as kernels of microcontrollers see it. */
typedef struct TfLiteEvalTensor {
    TfLitePtrUnion data;
    TfLiteIntArray* dims;
    TfLiteType type;
} TfLiteEvalTensor;

/* ---- Kernels ---- */

/* An operator of a graph; tensors are named by their indexes. */
struct TfLiteNode {
    TfLiteIntArray* inputs;
    TfLiteIntArray* outputs;
    TfLiteIntArray* intermediates;
    TfLiteIntArray* temporaries;
    void* user_data;                 /* what the registration's init has given */
    void* builtin_data;              /* the options of an operator that is no custom one */
    const void* custom_initial_data; /* the options of a custom one */
    int custom_initial_data_size;
    struct TfLiteDelegate* delegate;
    bool might_have_side_effect;
};

/* What a registration says of operators that may have an input and an output in the same memory. */
enum {
    kTfLiteInplaceOpNone = 0,
    kTfLiteInplaceOpDataUnmodified = 1,
    kTfLiteInplaceInputCanBeSharedWithCorrespondingOutput = 2,
    kTfLiteInplaceOpInput0Shared = 4,
    kTfLiteInplaceOpInput1Shared = 8,
    kTfLiteInplaceOpInput2Shared = 16
};

/* The functions of an operator. Older structures are what this one begins with. */
#define NNHAL_REGISTRATION_V1                                                                              \
    void* (*init)(TfLiteContext* context, const char* buffer, size_t length);                              \
    void (*free)(TfLiteContext* context, void* buffer);                                                    \
    TfLiteStatus (*prepare)(TfLiteContext* context, TfLiteNode* node);                                     \
    TfLiteStatus (*invoke)(TfLiteContext* context, TfLiteNode* node);                                      \
    const char* (*profiling_string)(const TfLiteContext* context, const TfLiteNode* node);                 \
    int32_t builtin_code;                                                                                  \
    const char* custom_name;                                                                               \
    int version;
#define NNHAL_REGISTRATION_V2 NNHAL_REGISTRATION_V1 TfLiteOperator* registration_external;
#define NNHAL_REGISTRATION_V3                                                                              \
    NNHAL_REGISTRATION_V2                                                                                  \
    struct TfLiteAsyncKernel* (*async_kernel)(TfLiteContext* context, TfLiteNode* node);

struct TfLiteRegistration_V1 {
    NNHAL_REGISTRATION_V1
};

struct TfLiteRegistration_V2 {
    NNHAL_REGISTRATION_V2
};

struct TfLiteRegistration_V3 {
    NNHAL_REGISTRATION_V3
};

struct TfLiteRegistration {
    NNHAL_REGISTRATION_V3
    uint64_t inplace_operator;
};

typedef struct TfLiteDelegateParams {
    struct TfLiteDelegate* delegate;
    TfLiteIntArray* nodes_to_replace;
    TfLiteIntArray* input_tensors;
    TfLiteIntArray* output_tensors;
} TfLiteDelegateParams;

typedef struct TfLiteOpaqueDelegateParams {
    TfLiteOpaqueDelegate* delegate;
    void* delegate_data;
    TfLiteIntArray* nodes_to_replace;
    TfLiteIntArray* input_tensors;
    TfLiteIntArray* output_tensors;
} TfLiteOpaqueDelegateParams;

typedef enum TfLiteExternalContextType {
    kTfLiteEigenContext = 0,
    kTfLiteGemmLowpContext = 1,
    kTfLiteEdgeTpuContext = 2,
    kTfLiteCpuBackendContext = 3,
    kTfLiteMaxExternalContexts = 4
} TfLiteExternalContextType;

typedef struct TfLiteExternalContext {
    TfLiteExternalContextType type;
    TfLiteStatus (*Refresh)(struct TfLiteContext* context);
} TfLiteExternalContext;

/* What a kernel or a delegate sees of a graph. This library makes none. */
struct TfLiteContext {
    size_t tensors_size;
    TfLiteStatus (*GetExecutionPlan)(struct TfLiteContext* context, TfLiteIntArray** execution_plan);
    TfLiteTensor* tensors;
    void* impl_;
    TfLiteStatus (*ResizeTensor)(struct TfLiteContext* context, TfLiteTensor* tensor,
                                 TfLiteIntArray* new_size);
    void (*ReportError)(struct TfLiteContext* context, const char* msg, ...);
    TfLiteStatus (*AddTensors)(struct TfLiteContext* context, int tensors_to_add,
                               int* first_new_tensor_index);
    TfLiteStatus (*GetNodeAndRegistration)(struct TfLiteContext* context, int node_index, TfLiteNode** node,
                                           TfLiteRegistration** registration);
    TfLiteStatus (*ReplaceNodeSubsetsWithDelegateKernels)(struct TfLiteContext* context,
                                                          TfLiteRegistration registration,
                                                          const TfLiteIntArray* nodes_to_replace,
                                                          struct TfLiteDelegate* delegate);
    int recommended_num_threads;
    TfLiteExternalContext* (*GetExternalContext)(struct TfLiteContext* context,
                                                 TfLiteExternalContextType type);
    void (*SetExternalContext)(struct TfLiteContext* context, TfLiteExternalContextType type,
                               TfLiteExternalContext* external);
    bool allow_fp32_relax_to_fp16;
    void* profiler;
    void* (*AllocatePersistentBuffer)(struct TfLiteContext* context, size_t bytes);
    TfLiteStatus (*AllocateBufferForEval)(struct TfLiteContext* context, size_t bytes, void** ptr);
    TfLiteStatus (*RequestScratchBufferInArena)(struct TfLiteContext* context, size_t bytes,
                                                int* buffer_idx);
    void* (*GetScratchBuffer)(struct TfLiteContext* context, int buffer_idx);
    TfLiteStatus (*ResizeTensorExplicit)(struct TfLiteContext* context, TfLiteTensor* tensor, int dims,
                                         const int* shape);
    TfLiteStatus (*PreviewDelegatePartitioning)(struct TfLiteContext* context,
                                                const TfLiteIntArray* nodes_to_replace,
                                                TfLiteDelegateParams** partition_params_array,
                                                int* num_partitions);
    TfLiteTensor* (*GetTensor)(const struct TfLiteContext* context, int tensor_idx);
    TfLiteEvalTensor* (*GetEvalTensor)(const struct TfLiteContext* context, int tensor_idx);
    TfLiteStatus (*GetModelMetadata)(const struct TfLiteContext* context, const char* name,
                                     const char** ptr, size_t* bytes);
    TfLiteStatus (*AcquireSubgraphContext)(struct TfLiteContext* context, int subgraph_index,
                                           struct TfLiteContext** acquired_context);
    TfLiteStatus (*ReleaseSubgraphContext)(struct TfLiteContext* context, int subgraph_index);
};

/* ---- Delegates ---- */

typedef enum TfLiteDelegateFlags {
    kTfLiteDelegateFlagsNone = 0,
    kTfLiteDelegateFlagsAllowDynamicTensors = 1,
    kTfLiteDelegateFlagsRequirePropagatedShapes = 2,
    kTfLiteDelegateFlagsPerOperatorProfiling = 4
} TfLiteDelegateFlags;

/* None of its functions is called by this library. */
struct TfLiteDelegate {
    void* data_;
    TfLiteStatus (*Prepare)(TfLiteContext* context, struct TfLiteDelegate* delegate);
    TfLiteStatus (*CopyFromBufferHandle)(TfLiteContext* context, struct TfLiteDelegate* delegate,
                                         TfLiteBufferHandle buffer_handle, TfLiteTensor* tensor);
    TfLiteStatus (*CopyToBufferHandle)(TfLiteContext* context, struct TfLiteDelegate* delegate,
                                       TfLiteBufferHandle buffer_handle, TfLiteTensor* tensor);
    void (*FreeBufferHandle)(TfLiteContext* context, struct TfLiteDelegate* delegate,
                             TfLiteBufferHandle* handle);
    int64_t flags;
    struct TfLiteOpaqueDelegateBuilder* opaque_delegate_builder;
};

/* One in which nothing is set. */
TfLiteDelegate TfLiteDelegateCreate(void);

#ifdef __cplusplus
}
#endif

#endif
