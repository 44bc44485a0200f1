/*
 * What the C API costs beyond the computation: a model of one addition of one number, so that hardly
 * anything is computed, executed in each way. Prints nanoseconds a call: the least mean over many short
 * turns that take each other's place, and the median and the 99th percentile of all calls; fails if a synchronous execution takes 10 microseconds or more.
 */
#define _POSIX_C_SOURCE 200809L
#include <nnhal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(call)                                                                \
    do {                                                                           \
        if ((call) != ANEURALNETWORKS_NO_ERROR) {                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, nnhal_lastError()); \
            exit(EXIT_FAILURE);                                                    \
        }                                                                          \
    } while (0)

enum { TURNS = 200, CALLS = 100, LIMIT = 10000 };

static ANeuralNetworksCompilation* compilation;
static ANeuralNetworksBurst* burst;
static ANeuralNetworksExecution* reusable;
static float x = 1, y = 2, sum;

static void compile(const char* wanted) {
    const uint32_t one = 1;
    const ANeuralNetworksOperandType tensor = {
            .type = ANEURALNETWORKS_TENSOR_FLOAT32, .dimensionCount = 1, .dimensions = &one};
    const ANeuralNetworksOperandType scalar = {.type = ANEURALNETWORKS_INT32};
    const int32_t none = ANEURALNETWORKS_FUSED_NONE;
    const uint32_t arguments[] = {0, 1, 2}, result = 3;
    ANeuralNetworksModel* model;
    CHECK(ANeuralNetworksModel_create(&model));
    CHECK(ANeuralNetworksModel_addOperand(model, &tensor));
    CHECK(ANeuralNetworksModel_addOperand(model, &tensor));
    CHECK(ANeuralNetworksModel_addOperand(model, &scalar));
    CHECK(ANeuralNetworksModel_addOperand(model, &tensor));
    CHECK(ANeuralNetworksModel_setOperandValue(model, 2, &none, sizeof none));
    CHECK(ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, arguments, 1, &result));
    CHECK(ANeuralNetworksModel_identifyInputsAndOutputs(model, 2, arguments, 1, &result));
    CHECK(ANeuralNetworksModel_finish(model));
    ANeuralNetworksDevice* device = NULL;
    uint32_t count;
    const char* name = "";
    CHECK(ANeuralNetworks_getDeviceCount(&count));
    for (uint32_t i = 0; i < count; i++) {
        CHECK(ANeuralNetworks_getDevice(i, &device));
        CHECK(ANeuralNetworksDevice_getName(device, &name));
        if (!wanted || strcmp(name, wanted) == 0) break;
    }
    printf("on %s\n", name);
    const ANeuralNetworksDevice* devices[] = {device};
    CHECK(ANeuralNetworksCompilation_createForDevices(model, devices, 1, &compilation));
    CHECK(ANeuralNetworksCompilation_finish(compilation));
    ANeuralNetworksModel_free(model);
}

static ANeuralNetworksExecution* prepare(void) {
    ANeuralNetworksExecution* execution;
    CHECK(ANeuralNetworksExecution_create(compilation, &execution));
    CHECK(ANeuralNetworksExecution_setInput(execution, 0, NULL, &x, sizeof x));
    CHECK(ANeuralNetworksExecution_setInput(execution, 1, NULL, &y, sizeof y));
    CHECK(ANeuralNetworksExecution_setOutput(execution, 0, NULL, &sum, sizeof sum));
    return execution;
}

static void compute(void) { CHECK(ANeuralNetworksExecution_compute(reusable)); }

static void burst_compute(void) { CHECK(ANeuralNetworksExecution_burstCompute(reusable, burst)); }

static void compute_once(void) {
    ANeuralNetworksExecution* execution = prepare();
    CHECK(ANeuralNetworksExecution_compute(execution));
    ANeuralNetworksExecution_free(execution);
}

static void start(void) {
    ANeuralNetworksEvent* event;
    CHECK(ANeuralNetworksExecution_startCompute(reusable, &event));
    CHECK(ANeuralNetworksEvent_wait(event));
    ANeuralNetworksEvent_free(event);
}

static void start_fenced(void) {
    ANeuralNetworksEvent* event;
    CHECK(ANeuralNetworksExecution_startComputeWithDependencies(reusable, NULL, 0, 0, &event));
    CHECK(ANeuralNetworksEvent_wait(event));
    ANeuralNetworksEvent_free(event);
}

static void handle_only(void) {
    uint32_t rank;
    CHECK(ANeuralNetworksExecution_getOutputOperandRank(reusable, 0, &rank));
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static const struct {
    const char* name;
    void (*call)(void);
} ways[] = {
        {"compute, reusable execution", compute},
        {"compute, execution made for it", compute_once},
        {"burstCompute, reusable", burst_compute},
        {"startCompute and wait", start},
        {"startComputeWithDependencies and wait", start_fenced},
        {"getOutputOperandRank (border alone)", handle_only},
};
enum { WAYS = sizeof ways / sizeof *ways, ALL = TURNS * CALLS };

static double taken[WAYS][ALL];

static int ascending(const void* left, const void* right) {
    const double difference = *(const double*)left - *(const double*)right;
    return (difference > 0) - (difference < 0);
}

int main(int count, char** arguments) {
    compile(count > 1 ? arguments[1] : NULL);
    CHECK(ANeuralNetworksBurst_create(compilation, &burst));
    reusable = prepare();
    CHECK(ANeuralNetworksExecution_setReusable(reusable, true));
    double least[WAYS];
    for (int way = 0; way < WAYS; way++) least[way] = 1e18;
    for (int turn = 0; turn < TURNS; turn++) {
        for (int way = 0; way < WAYS; way++) {
            const double began = now();
            double before = began;
            for (int call = 0; call < CALLS; call++) {
                ways[way].call();
                const double after = now();
                taken[way][turn * CALLS + call] = after - before;
                before = after;
            }
            const double mean = (before - began) / CALLS;
            if (mean < least[way]) least[way] = mean;
        }
    }
    printf("%-40s %8s    %8s    %8s\n", "", "least", "median", "99 %");
    for (int way = 0; way < WAYS; way++) {
        qsort(taken[way], ALL, sizeof *taken[way], ascending);
        const double median = taken[way][ALL / 2], most = taken[way][ALL / 100 * 99];
        printf("%-40s %8.0f ns %8.0f ns %8.0f ns\n", ways[way].name, least[way], median, most);
    }
    if (sum != 3) {
        fprintf(stderr, "1 + 2 is %g\n", sum);
        return EXIT_FAILURE;
    }
    return least[0] < LIMIT && least[1] < LIMIT ? EXIT_SUCCESS : EXIT_FAILURE;
}
