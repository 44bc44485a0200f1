/*
 * Loads the library as TensorFlow Lite's NNAPI delegate does on Linux: dlopen by name, dlsym for each
 * function, shared memory by shm_open. Then does what the delegate does with a model: asks the devices
 * what they can, compiles for one of them with a cache and a preference, keeps inputs and outputs in
 * one shared memory each, and executes synchronously, in a burst and with an event.
 *
 * Linked with nothing of ours; the library is found by LD_LIBRARY_PATH, or is the first argument.
 */
#define _GNU_SOURCE
#include <android/NeuralNetworks.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Every function that the delegate asks for by name, up to feature level 5. */
#define FUNCTIONS(F)                                           \
    F(ANeuralNetworksMemory_createFromFd)                      \
    F(ANeuralNetworksMemory_free)                              \
    F(ANeuralNetworksModel_create)                             \
    F(ANeuralNetworksModel_free)                               \
    F(ANeuralNetworksModel_finish)                             \
    F(ANeuralNetworksModel_addOperand)                         \
    F(ANeuralNetworksModel_setOperandValue)                    \
    F(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams) \
    F(ANeuralNetworksModel_setOperandValueFromMemory)          \
    F(ANeuralNetworksModel_addOperation)                       \
    F(ANeuralNetworksModel_identifyInputsAndOutputs)           \
    F(ANeuralNetworksModel_relaxComputationFloat32toFloat16)   \
    F(ANeuralNetworksCompilation_create)                       \
    F(ANeuralNetworksCompilation_free)                         \
    F(ANeuralNetworksCompilation_setPreference)                \
    F(ANeuralNetworksCompilation_setPriority)                  \
    F(ANeuralNetworksCompilation_setTimeout)                   \
    F(ANeuralNetworksCompilation_finish)                       \
    F(ANeuralNetworksExecution_create)                         \
    F(ANeuralNetworksExecution_free)                           \
    F(ANeuralNetworksExecution_setInput)                       \
    F(ANeuralNetworksExecution_setInputFromMemory)             \
    F(ANeuralNetworksExecution_setOutput)                      \
    F(ANeuralNetworksExecution_setOutputFromMemory)            \
    F(ANeuralNetworksExecution_setTimeout)                     \
    F(ANeuralNetworksExecution_setLoopTimeout)                 \
    F(ANeuralNetworksExecution_setReusable)                    \
    F(ANeuralNetworksExecution_enableInputAndOutputPadding)    \
    F(ANeuralNetworksExecution_startCompute)                   \
    F(ANeuralNetworksExecution_startComputeWithDependencies)   \
    F(ANeuralNetworksEvent_wait)                               \
    F(ANeuralNetworksEvent_free)                               \
    F(ANeuralNetworksEvent_createFromSyncFenceFd)              \
    F(ANeuralNetworksEvent_getSyncFenceFd)                     \
    F(ANeuralNetworks_getDeviceCount)                          \
    F(ANeuralNetworks_getDevice)                               \
    F(ANeuralNetworks_getRuntimeFeatureLevel)                  \
    F(ANeuralNetworks_getDefaultLoopTimeout)                   \
    F(ANeuralNetworks_getMaximumLoopTimeout)                   \
    F(ANeuralNetworksDevice_getName)                           \
    F(ANeuralNetworksDevice_getVersion)                        \
    F(ANeuralNetworksDevice_getFeatureLevel)                   \
    F(ANeuralNetworksDevice_getType)                           \
    F(ANeuralNetworksDevice_wait)                              \
    F(ANeuralNetworksModel_getSupportedOperationsForDevices)   \
    F(ANeuralNetworksModel_setOperandValueFromModel)           \
    F(ANeuralNetworksCompilation_createForDevices)             \
    F(ANeuralNetworksCompilation_setCaching)                   \
    F(ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput)  \
    F(ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput) \
    F(ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput)    \
    F(ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput)   \
    F(ANeuralNetworksExecution_compute)                        \
    F(ANeuralNetworksExecution_getOutputOperandRank)           \
    F(ANeuralNetworksExecution_getOutputOperandDimensions)     \
    F(ANeuralNetworksBurst_create)                             \
    F(ANeuralNetworksBurst_free)                               \
    F(ANeuralNetworksExecution_burstCompute)                   \
    F(ANeuralNetworksMemory_createFromAHardwareBuffer)         \
    F(ANeuralNetworksMemory_createFromDesc)                    \
    F(ANeuralNetworksMemory_copy)                              \
    F(ANeuralNetworksMemoryDesc_create)                        \
    F(ANeuralNetworksMemoryDesc_free)                          \
    F(ANeuralNetworksMemoryDesc_addInputRole)                  \
    F(ANeuralNetworksMemoryDesc_addOutputRole)                 \
    F(ANeuralNetworksMemoryDesc_setDimensions)                 \
    F(ANeuralNetworksMemoryDesc_finish)                        \
    F(ANeuralNetworksExecution_setMeasureTiming)               \
    F(ANeuralNetworksExecution_getDuration)                    \
    F(ANeuralNetworksDevice_getExtensionSupport)               \
    F(ANeuralNetworksModel_getExtensionOperandType)            \
    F(ANeuralNetworksModel_getExtensionOperationType)          \
    F(ANeuralNetworksModel_setOperandExtensionData)

#include <android/NeuralNetworksExtensions.h>

static struct {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
} nnapi;

static int missing;

static void* load(void* library, const char* name) {
    void* function = dlsym(library, name);
    if (!function) {
        fprintf(stderr, "the library has no %s\n", name);
        missing++;
    }
    /* Under the version that Android's library gives it, too. */
    const int is_extension = strstr(name, "xtension") != NULL;
    const char* version = is_extension ? "LIBNEURALNETWORKS_PLATFORM" : "LIBNEURALNETWORKS";
    if (dlvsym(library, name, version) != function) {
        fprintf(stderr, "%s has not the version %s\n", name, version);
        missing++;
    }
    return function;
}

#define CHECK(call)                                                                     \
    do {                                                                                \
        const int code = (call);                                                        \
        if (code != ANEURALNETWORKS_NO_ERROR) {                                         \
            fprintf(stderr, "%s:%d: %s answers %d\n", __FILE__, __LINE__, #call, code); \
            exit(EXIT_FAILURE);                                                         \
        }                                                                               \
    } while (0)

/* As the delegate makes shared memory where there is no Android. */
static int create_shared_memory(const char* name, size_t size) {
    const int file = shm_open(name, O_RDWR | O_CREAT, 0644);
    if (file < 0 || ftruncate(file, (off_t)size) != 0) {
        perror(name);
        exit(EXIT_FAILURE);
    }
    return file;
}

typedef struct {
    char name[64];
    int file;
    float* data;
    ANeuralNetworksMemory* memory;
} Shared;

enum { SIZE = 4096, LENGTH = 3 };

static Shared share(const char* role) {
    Shared shared;
    snprintf(shared.name, sizeof shared.name, "/nnhal-%s-%d", role, (int)getpid());
    shared.file = create_shared_memory(shared.name, SIZE);
    shared.data = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, shared.file, 0);
    if (shared.data == MAP_FAILED) {
        perror("mmap");
        exit(EXIT_FAILURE);
    }
    CHECK(nnapi.ANeuralNetworksMemory_createFromFd(SIZE, PROT_READ | PROT_WRITE, shared.file, 0,
                                                   &shared.memory));
    return shared;
}

static void drop(Shared* shared) {
    nnapi.ANeuralNetworksMemory_free(shared->memory);
    munmap(shared->data, SIZE);
    close(shared->file);
    shm_unlink(shared->name);
}

/* y = relu6(x * [2, 3, 4]) */
static ANeuralNetworksModel* build(void) {
    const uint32_t dimensions[] = {1, LENGTH};
    const ANeuralNetworksOperandType tensor = {
            ANEURALNETWORKS_TENSOR_FLOAT32, 2, dimensions, 0, 0};
    const ANeuralNetworksOperandType scalar = {ANEURALNETWORKS_INT32, 0, NULL, 0, 0};
    static const float weights[LENGTH] = {2, 3, 4};
    const int32_t relu6 = ANEURALNETWORKS_FUSED_RELU6;
    const uint32_t inputs[] = {0, 1, 2}, outputs[] = {3};
    ANeuralNetworksModel* model;
    CHECK(nnapi.ANeuralNetworksModel_create(&model));
    CHECK(nnapi.ANeuralNetworksModel_addOperand(model, &tensor));
    CHECK(nnapi.ANeuralNetworksModel_addOperand(model, &tensor));
    CHECK(nnapi.ANeuralNetworksModel_addOperand(model, &scalar));
    CHECK(nnapi.ANeuralNetworksModel_addOperand(model, &tensor));
    CHECK(nnapi.ANeuralNetworksModel_setOperandValue(model, 1, weights, sizeof weights));
    CHECK(nnapi.ANeuralNetworksModel_setOperandValue(model, 2, &relu6, sizeof relu6));
    CHECK(nnapi.ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_MUL, 3, inputs, 1,
                                                  outputs));
    CHECK(nnapi.ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, inputs, 1, outputs));
    CHECK(nnapi.ANeuralNetworksModel_relaxComputationFloat32toFloat16(model, false));
    CHECK(nnapi.ANeuralNetworksModel_finish(model));
    return model;
}

static void expect(const char* way, const float* y) {
    static const float expected[LENGTH] = {1, 6, 0};
    for (int i = 0; i < LENGTH; i++) {
        if (y[i] != expected[i]) {
            fprintf(stderr, "%s: y[%d] is %g, expected %g\n", way, i, y[i], expected[i]);
            exit(EXIT_FAILURE);
        }
    }
    printf("%s: right\n", way);
}

int main(int count, char** arguments) {
    void* library = dlopen(count > 1 ? arguments[1] : "libneuralnetworks.so", RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return EXIT_FAILURE;
    }
#define LOAD(name) *(void**)&nnapi.name = load(library, #name);
    FUNCTIONS(LOAD)
    if (missing) return EXIT_FAILURE;
    printf("feature level %lld\n", (long long)nnapi.ANeuralNetworks_getRuntimeFeatureLevel());

    ANeuralNetworksModel* model = build();
    uint32_t devices;
    CHECK(nnapi.ANeuralNetworks_getDeviceCount(&devices));
    for (uint32_t i = 0; i < devices; i++) {
        ANeuralNetworksDevice* device;
        const char *name, *version;
        int64_t level;
        bool supported = false;
        CHECK(nnapi.ANeuralNetworks_getDevice(i, &device));
        CHECK(nnapi.ANeuralNetworksDevice_getName(device, &name));
        CHECK(nnapi.ANeuralNetworksDevice_getVersion(device, &version));
        CHECK(nnapi.ANeuralNetworksDevice_getFeatureLevel(device, &level));
        const ANeuralNetworksDevice* list[] = {device};
        CHECK(nnapi.ANeuralNetworksModel_getSupportedOperationsForDevices(model, list, 1,
                                                                          &supported));
        printf("%s %s, feature level %lld: %s\n", name, version, (long long)level,
               supported ? "can do it" : "cannot do it");
        if (!supported) return EXIT_FAILURE;

        ANeuralNetworksCompilation* compilation;
        char folder[] = "/tmp/nnhal-delegate-XXXXXX";
        uint8_t token[ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN] = {7};
        if (!mkdtemp(folder)) return EXIT_FAILURE;
        CHECK(nnapi.ANeuralNetworksCompilation_createForDevices(model, list, 1, &compilation));
        CHECK(nnapi.ANeuralNetworksCompilation_setPreference(
                compilation, ANEURALNETWORKS_PREFER_SUSTAINED_SPEED));
        CHECK(nnapi.ANeuralNetworksCompilation_setPriority(compilation,
                                                           ANEURALNETWORKS_PRIORITY_HIGH));
        CHECK(nnapi.ANeuralNetworksCompilation_setCaching(compilation, folder, token));
        CHECK(nnapi.ANeuralNetworksCompilation_finish(compilation));

        Shared input = share("input"), output = share("output");
        /* A little way in, as several arguments share one memory. */
        float *x = input.data + 16, *y = output.data + 32;
        memcpy(x, (float[LENGTH]){0.5f, 5, -1}, LENGTH * sizeof *x);
        ANeuralNetworksBurst* burst;
        CHECK(nnapi.ANeuralNetworksBurst_create(compilation, &burst));
        for (int way = 0; way < 3; way++) {
            ANeuralNetworksExecution* execution;
            CHECK(nnapi.ANeuralNetworksExecution_create(compilation, &execution));
            CHECK(nnapi.ANeuralNetworksExecution_setInputFromMemory(
                    execution, 0, NULL, input.memory, 16 * sizeof *x, LENGTH * sizeof *x));
            CHECK(nnapi.ANeuralNetworksExecution_setOutputFromMemory(
                    execution, 0, NULL, output.memory, 32 * sizeof *y, LENGTH * sizeof *y));
            memset(output.data, 0, SIZE);
            if (way == 0) {
                CHECK(nnapi.ANeuralNetworksExecution_compute(execution));
                expect("compute", y);
            } else if (way == 1) {
                CHECK(nnapi.ANeuralNetworksExecution_burstCompute(execution, burst));
                expect("burstCompute", y);
            } else {
                ANeuralNetworksEvent* event;
                CHECK(nnapi.ANeuralNetworksExecution_startCompute(execution, &event));
                CHECK(nnapi.ANeuralNetworksEvent_wait(event));
                nnapi.ANeuralNetworksEvent_free(event);
                expect("startCompute", y);
            }
            nnapi.ANeuralNetworksExecution_free(execution);
        }
        nnapi.ANeuralNetworksBurst_free(burst);
        drop(&input);
        drop(&output);
        nnapi.ANeuralNetworksCompilation_free(compilation);
        char command[128];
        snprintf(command, sizeof command, "rm -r %s", folder);
        if (system(command) != 0) return EXIT_FAILURE;
    }
    nnapi.ANeuralNetworksModel_free(model);
    return EXIT_SUCCESS;
}
