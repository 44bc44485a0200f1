/*
 * Builds a small model by hand, compiles it, and runs it in the four ways that the Neural Networks
 * API has: and wait, with an event, through a burst, and behind a dependency.
 *
 *     cc four_ways.c $(pkg-config --cflags --libs neuralnetworks) -o four_ways && ./four_ways
 */
#include "check.h"

#include <math.h>
#include <string.h>

enum { LENGTH = 4 };

/* y = relu(x + c), with c = [1, 2, 3, 4] kept inside the model. */
static ANeuralNetworksModel* build(void) {
    const uint32_t dimensions[] = {1, LENGTH};
    const ANeuralNetworksOperandType tensor = {
            .type = ANEURALNETWORKS_TENSOR_FLOAT32, .dimensionCount = 2, .dimensions = dimensions};
    const ANeuralNetworksOperandType scalar = {.type = ANEURALNETWORKS_INT32};
    const float addend[LENGTH] = {1, 2, 3, 4};
    const int32_t activation = ANEURALNETWORKS_FUSED_RELU;

    ANeuralNetworksModel* model;
    CHECK(ANeuralNetworksModel_create(&model));
    CHECK(ANeuralNetworksModel_addOperand(model, &tensor)); /* 0: x */
    CHECK(ANeuralNetworksModel_addOperand(model, &tensor)); /* 1: c */
    CHECK(ANeuralNetworksModel_addOperand(model, &scalar)); /* 2: activation */
    CHECK(ANeuralNetworksModel_addOperand(model, &tensor)); /* 3: y */
    CHECK(ANeuralNetworksModel_setOperandValue(model, 1, addend, sizeof addend));
    CHECK(ANeuralNetworksModel_setOperandValue(model, 2, &activation, sizeof activation));

    const uint32_t arguments[] = {0, 1, 2}, results[] = {3};
    CHECK(ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, arguments, 1, results));
    CHECK(ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, arguments, 1, results));
    CHECK(ANeuralNetworksModel_finish(model));
    return model;
}

static ANeuralNetworksExecution* prepare(ANeuralNetworksCompilation* compilation, const float* x,
                                         float* y) {
    ANeuralNetworksExecution* execution;
    CHECK(ANeuralNetworksExecution_create(compilation, &execution));
    CHECK(ANeuralNetworksExecution_setInput(execution, 0, NULL, x, LENGTH * sizeof *x));
    CHECK(ANeuralNetworksExecution_setOutput(execution, 0, NULL, y, LENGTH * sizeof *y));
    return execution;
}

static void show(const char* way, const float* y) {
    static const float expected[LENGTH] = {0, 2.5f, 0, 104};
    printf("%-28s y = [%g, %g, %g, %g]\n", way, y[0], y[1], y[2], y[3]);
    for (int i = 0; i < LENGTH; i++) {
        if (!(fabsf(y[i] - expected[i]) < 1e-6f)) {
            fprintf(stderr, "y[%d] is %g, expected %g\n", i, y[i], expected[i]);
            exit(EXIT_FAILURE);
        }
    }
}

int main(void) {
    uint32_t count;
    CHECK(ANeuralNetworks_getDeviceCount(&count));
    for (uint32_t i = 0; i < count; i++) {
        ANeuralNetworksDevice* device;
        const char *name, *version;
        CHECK(ANeuralNetworks_getDevice(i, &device));
        CHECK(ANeuralNetworksDevice_getName(device, &name));
        CHECK(ANeuralNetworksDevice_getVersion(device, &version));
        printf("device %u: %s, %s\n", i, name, version);
    }

    ANeuralNetworksModel* model = build();
    ANeuralNetworksCompilation* compilation;
    CHECK(ANeuralNetworksCompilation_create(model, &compilation));
    CHECK(ANeuralNetworksCompilation_setPreference(compilation,
                                                   ANEURALNETWORKS_PREFER_SUSTAINED_SPEED));
    CHECK(ANeuralNetworksCompilation_finish(compilation));

    const float x[LENGTH] = {-10, 0.5f, -3, 100};
    float y[LENGTH];
    ANeuralNetworksExecution* execution;
    ANeuralNetworksEvent* event;

    /* 1. Compute, and come back when it is done. */
    execution = prepare(compilation, x, y);
    CHECK(ANeuralNetworksExecution_compute(execution));
    ANeuralNetworksExecution_free(execution);
    show("compute", y);

    /* 2. Begin, do something else, wait for the event. */
    memset(y, 0, sizeof y);
    execution = prepare(compilation, x, y);
    CHECK(ANeuralNetworksExecution_startCompute(execution, &event));
    CHECK(ANeuralNetworksEvent_wait(event));
    ANeuralNetworksEvent_free(event);
    ANeuralNetworksExecution_free(execution);
    show("startCompute", y);

    /* 3. Many in close succession through a burst; one execution serves for all of them. */
    ANeuralNetworksBurst* burst;
    CHECK(ANeuralNetworksBurst_create(compilation, &burst));
    execution = prepare(compilation, x, y);
    CHECK(ANeuralNetworksExecution_setReusable(execution, true));
    for (int i = 0; i < 1000; i++) {
        memset(y, 0, sizeof y);
        CHECK(ANeuralNetworksExecution_burstCompute(execution, burst));
    }
    ANeuralNetworksExecution_free(execution);
    ANeuralNetworksBurst_free(burst);
    show("burstCompute", y);

    /* 4. One behind the other: the second begins when the first has ended. */
    float between[LENGTH], z[LENGTH];
    ANeuralNetworksEvent* last;
    execution = prepare(compilation, x, between);
    CHECK(ANeuralNetworksExecution_startComputeWithDependencies(execution, NULL, 0, 0, &event));
    ANeuralNetworksExecution* second = prepare(compilation, x, z);
    const ANeuralNetworksEvent* dependencies[] = {event};
    CHECK(ANeuralNetworksExecution_startComputeWithDependencies(second, dependencies, 1, 0, &last));
    CHECK(ANeuralNetworksEvent_wait(last));
    CHECK(ANeuralNetworksEvent_wait(event));
    ANeuralNetworksEvent_free(last);
    ANeuralNetworksEvent_free(event);
    ANeuralNetworksExecution_free(second);
    ANeuralNetworksExecution_free(execution);
    show("startComputeWithDependencies", between);
    show("... and the one behind it", z);

    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
    return EXIT_SUCCESS;
}
