/*
 * Uses the C library wrongly, and from several threads and processes: each call must answer, and none crash. Compiled
 * against the headers that `cargo xtask install` puts under the prefix.
 *
 *     misuse assets/digits/digits_int8.tflite
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tensorflow/lite/c/c_api.h"
#include "tensorflow/lite/c/c_api_experimental.h"
#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/delegates/xnnpack/xnnpack_delegate.h"

#define CHECK(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);          \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

static char last[4096];
static int reports;

static void report(void* user_data, const char* format, va_list arguments) {
    CHECK(user_data == last);
    vsnprintf(last, sizeof last, format, arguments);
    reports++;
}

static void quiet(void* user_data, const char* format, va_list arguments) {
    (void)user_data, (void)format, (void)arguments;
}

static TfLiteInterpreterOptions* reporting(void) {
    TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
    TfLiteInterpreterOptionsSetErrorReporter(options, report, last);
    return options;
}

/* The class of a picture of one brightness. */
static int run(TfLiteInterpreter* interpreter, int brightness) {
    TfLiteTensor* input = TfLiteInterpreterGetInputTensor(interpreter, 0);
    const TfLiteTensor* output = TfLiteInterpreterGetOutputTensor(interpreter, 0);
    signed char pixels[64], scores[10];
    memset(pixels, brightness, sizeof pixels);
    CHECK(TfLiteTensorCopyFromBuffer(input, pixels, sizeof pixels) == kTfLiteOk);
    CHECK(TfLiteInterpreterInvoke(interpreter) == kTfLiteOk);
    CHECK(TfLiteTensorCopyToBuffer(output, scores, sizeof scores) == kTfLiteOk);
    int best = 0;
    for (int i = 1; i < 10; i++)
        if (scores[i] > scores[best]) best = i;
    return best;
}

static TfLiteInterpreter* ready(const TfLiteModel* model) {
    TfLiteInterpreter* interpreter = TfLiteInterpreterCreate(model, NULL);
    CHECK(interpreter && TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteOk);
    return interpreter;
}

static void order_and_sizes(const TfLiteModel* model) {
    TfLiteInterpreterOptions* options = reporting();
    TfLiteInterpreter* interpreter = TfLiteInterpreterCreate(model, options);
    TfLiteInterpreterOptionsDelete(options);
    signed char pixels[64] = {0};
    TfLiteTensor* input = TfLiteInterpreterGetInputTensor(interpreter, 0);
    CHECK(input->data.raw == NULL && input->bytes == 64 && input->type == kTfLiteInt8);
    CHECK(TfLiteTensorCopyFromBuffer(input, pixels, 64) == kTfLiteError);
    CHECK(TfLiteInterpreterInvoke(interpreter) == kTfLiteError);
    CHECK(reports == 1 && strstr(last, "AllocateTensors"));
    CHECK(TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteOk);
    CHECK((size_t)input->data.raw % 64 == 0 && input->allocation_type == kTfLiteArenaRw);
    void* data = TfLiteTensorData(input);
    CHECK(TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteOk && TfLiteTensorData(input) == data);
    CHECK(TfLiteTensorCopyFromBuffer(input, pixels, 63) == kTfLiteError);
    CHECK(TfLiteTensorCopyFromBuffer(input, NULL, 64) == kTfLiteError);
    CHECK(TfLiteTensorCopyFromBuffer(NULL, pixels, 64) == kTfLiteError);
    CHECK(TfLiteInterpreterGetInputTensor(interpreter, 1) == NULL);
    CHECK(TfLiteInterpreterGetInputTensor(interpreter, -1) == NULL);
    CHECK(TfLiteInterpreterGetOutputTensor(interpreter, 1 << 30) == NULL);
    CHECK(TfLiteInterpreterGetTensor(interpreter, -5) == NULL);
    CHECK(TfLiteInterpreterGetTensor(interpreter, 1 << 30) == NULL);
    CHECK(TfLiteTensorDim(input, 4) == 0 && TfLiteTensorDim(input, -1) == 0 && TfLiteTensorDim(input, 1) == 8);
    int batch_of_two[] = {2, 8, 8, 1}, negative[] = {-1, 8, 8, 1}, other_rank[] = {64};
    /* The same shape changes nothing. */
    int same[] = {1, 8, 8, 1};
    CHECK(TfLiteInterpreterResizeInputTensor(interpreter, 0, same, 4) == kTfLiteOk);
    run(interpreter, 5);
    CHECK(TfLiteInterpreterResizeInputTensor(interpreter, 0, negative, 4) == kTfLiteError);
    CHECK(TfLiteInterpreterResizeInputTensor(interpreter, 0, NULL, 4) == kTfLiteError);
    CHECK(TfLiteInterpreterResizeInputTensor(interpreter, 0, same, -1) == kTfLiteError);
    CHECK(TfLiteInterpreterResizeInputTensor(interpreter, 3, same, 4) == kTfLiteError);
    run(interpreter, 5);
    CHECK(TfLiteInterpreterResizeInputTensor(interpreter, 0, other_rank, 1) == kTfLiteOk);
    CHECK(TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteError);
    CHECK(TfLiteInterpreterInvoke(interpreter) == kTfLiteError);
    CHECK(TfLiteInterpreterResizeInputTensor(interpreter, 0, batch_of_two, 4) == kTfLiteOk);
    CHECK(TfLiteInterpreterInvoke(interpreter) == kTfLiteError);
    CHECK(input->dims->data[0] == 2 && input->bytes == 128);
    int status = TfLiteInterpreterAllocateTensors(interpreter);
    CHECK(status == kTfLiteOk || status == kTfLiteError);
    CHECK(TfLiteInterpreterResizeInputTensor(interpreter, 0, same, 4) == kTfLiteOk);
    CHECK(TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteOk);
    run(interpreter, 5);
    CHECK(TfLiteInterpreterCancel(interpreter) == kTfLiteError && strstr(last, "EnableCancellation"));
    CHECK(TfLiteInterpreterGetSignatureRunner(interpreter, "none") == NULL && strstr(last, "none"));
    TfLiteInterpreterDelete(interpreter);
    CHECK(reports > 10);
}

static void deleted(TfLiteModel* model) {
    TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
    TfLiteInterpreter* interpreter = ready(model);
    TfLiteTensor* input = TfLiteInterpreterGetInputTensor(interpreter, 0);
    TfLiteSignatureRunner* runner = TfLiteInterpreterGetSignatureRunner(interpreter, NULL);
    CHECK(runner && TfLiteSignatureRunnerInvoke(runner) == kTfLiteOk);
    TfLiteInterpreterDelete(interpreter);
    CHECK(TfLiteSignatureRunnerInvoke(runner) == kTfLiteError);
    CHECK(TfLiteSignatureRunnerGetInputCount(runner) == 0);
    TfLiteSignatureRunnerDelete(runner);
    signed char pixels[64];
    CHECK(TfLiteTensorCopyFromBuffer(input, pixels, 64) == kTfLiteError);
    CHECK(TfLiteTensorData(input) == NULL && TfLiteTensorNumDims(input) == -1 && TfLiteTensorByteSize(input) == 0);
    CHECK(TfLiteTensorName(input) == NULL && TfLiteTensorType(input) == kTfLiteNoType);
    /* What the program reads itself is empty, and still there. */
    CHECK(input->data.raw == NULL && input->dims == NULL);
    CHECK(TfLiteInterpreterInvoke(interpreter) == kTfLiteError);
    CHECK(TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteError);
    CHECK(TfLiteInterpreterGetInputTensorCount(interpreter) == 0);
    CHECK(TfLiteInterpreterGetInputTensor(interpreter, 0) == NULL);
    TfLiteInterpreterDelete(interpreter);
    TfLiteSignatureRunnerDelete(runner);
    CHECK(TfLiteSignatureRunnerInvoke(runner) == kTfLiteError);
    TfLiteInterpreterOptionsDelete(options);
    TfLiteInterpreterOptionsSetNumThreads(options, 1);
    CHECK(TfLiteInterpreterCreate(model, options) == NULL);
    CHECK(TfLiteInterpreterOptionsCopy(options) == NULL);
    TfLiteInterpreterOptionsDelete(options);
    TfLiteModelDelete(model);
    CHECK(TfLiteInterpreterCreate(model, NULL) == NULL);
    TfLiteModelDelete(model);
    /* One kind in the place of another, and no object at all. */
    CHECK(TfLiteInterpreterInvoke((TfLiteInterpreter*)model) == kTfLiteError);
    CHECK(TfLiteInterpreterInvoke((TfLiteInterpreter*)0x12345) == kTfLiteError);
    CHECK(TfLiteInterpreterInvoke(NULL) == kTfLiteError);
    TfLiteModelDelete(NULL);
    TfLiteInterpreterDelete(NULL);
    TfLiteInterpreterOptionsDelete(NULL);
}

static void no_models(void) {
    CHECK(TfLiteModelCreate(NULL, 10) == NULL);
    CHECK(TfLiteModelCreate("TFL3", 0) == NULL);
    char noise[1000];
    for (unsigned i = 0; i < sizeof noise; i++) noise[i] = (char)(i * 2654435761u >> 13);
    memcpy(noise + 4, "TFL3", 4);
    CHECK(TfLiteModelCreateWithErrorReporter(noise, sizeof noise, report, last) == NULL);
    CHECK(strstr(last, "ModelCreate"));
    CHECK(TfLiteModelCreateFromFileWithErrorReporter("/does/not/exist", report, last) == NULL);
    CHECK(strstr(last, "/does/not/exist"));
    CHECK(TfLiteModelCreateFromFile(NULL) == NULL && TfLiteModelCreateFromFile("/") == NULL);
}

static TfLiteStatus prepare(TfLiteContext* context, TfLiteDelegate* delegate) {
    (void)context, (void)delegate;
    abort();
}

static void delegates(const TfLiteModel* model) {
    TfLiteDelegate foreign = TfLiteDelegateCreate();
    foreign.Prepare = prepare;
    TfLiteInterpreterOptions* options = reporting();
    TfLiteInterpreterOptionsAddDelegate(options, &foreign);
    CHECK(TfLiteInterpreterCreate(model, options) == NULL && strstr(last, "delegate"));
    TfLiteInterpreterOptionsSetEnableDelegateFallback(options, true);
    TfLiteInterpreter* interpreter = TfLiteInterpreterCreate(model, options);
    CHECK(interpreter);
    CHECK(TfLiteInterpreterModifyGraphWithDelegate(interpreter, &foreign) == kTfLiteDelegateError);
    TfLiteInterpreterDelete(interpreter);
    TfLiteInterpreterOptionsDelete(options);

    TfLiteXNNPackDelegateOptions wanted = TfLiteXNNPackDelegateOptionsDefault();
    wanted.num_threads = 2;
    TfLiteDelegate* own = TfLiteXNNPackDelegateCreate(&wanted);
    CHECK(own && TfLiteXNNPackDelegateGetOptions(own)->num_threads == 2);
    options = reporting();
    TfLiteInterpreterOptionsAddDelegate(options, own);
    interpreter = TfLiteInterpreterCreate(model, options);
    CHECK(interpreter && TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteOk);
    run(interpreter, 3);
    TfLiteInterpreterDelete(interpreter);
    TfLiteInterpreterOptionsDelete(options);
    TfLiteXNNPackDelegateDelete(own);
    TfLiteXNNPackDelegateDelete(own);
}

static void memory_of_the_program(const TfLiteModel* model) {
    static _Alignas(64) signed char pixels[128], scores[64];
    TfLiteInterpreterOptions* options = reporting();
    TfLiteInterpreter* interpreter = TfLiteInterpreterCreate(model, options);
    TfLiteInterpreterOptionsDelete(options);
    CHECK(TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteOk);
    int input = TfLiteInterpreterGetInputTensorIndex(interpreter, 0);
    int output = TfLiteInterpreterOutputTensorIndices(interpreter)[0];
    TfLiteCustomAllocation taken = {pixels, 64}, given = {scores, 10}, crooked = {pixels + 1, 64}, small = {scores, 9};
    CHECK(TfLiteInterpreterSetCustomAllocationForTensor(interpreter, input, &crooked, 0) == kTfLiteError);
    CHECK(TfLiteInterpreterSetCustomAllocationForTensor(interpreter, input, NULL, 0) == kTfLiteError);
    CHECK(TfLiteInterpreterSetCustomAllocationForTensor(interpreter, input, &taken, 0) == kTfLiteOk);
    CHECK(TfLiteInterpreterSetCustomAllocationForTensor(interpreter, output, &small, 0) == kTfLiteOk);
    CHECK(TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteError && strstr(last, "9 bytes"));
    CHECK(TfLiteInterpreterSetCustomAllocationForTensor(interpreter, output, &given, 0) == kTfLiteOk);
    CHECK(TfLiteInterpreterInvoke(interpreter) == kTfLiteError);
    CHECK(TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteOk);
    memset(pixels, 5, 64);
    CHECK(TfLiteInterpreterInvoke(interpreter) == kTfLiteOk);
    TfLiteInterpreter* other = ready(model);
    run(other, 5);
    CHECK(memcmp(TfLiteTensorData(TfLiteInterpreterGetOutputTensor(other, 0)), scores, 10) == 0);
    CHECK(TfLiteTensorData(TfLiteInterpreterGetInputTensor(interpreter, 0)) == pixels);
    TfLiteInterpreterDelete(other);
    TfLiteInterpreterDelete(interpreter);
}

static void* many(void* model) {
    for (int i = 0; i < 20; i++) {
        TfLiteInterpreter* interpreter = ready(model);
        for (int j = 0; j < 20; j++) run(interpreter, j);
        TfLiteInterpreterDelete(interpreter);
    }
    return NULL;
}

static void threads(TfLiteModel* model) {
    pthread_t all[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&all[i], NULL, many, model) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(all[i], NULL) == 0);
}

static TfLiteInterpreter* shared;

static void* misusing(void* unused) {
    (void)unused;
    signed char bytes[64] = {0};
    for (int i = 0; i < 300; i++) {
        TfLiteTensor* input = TfLiteInterpreterGetInputTensor(shared, 0);
        TfLiteTensorCopyFromBuffer(input, bytes, sizeof bytes);
        TfLiteInterpreterInvoke(shared);
        TfLiteTensorCopyToBuffer(TfLiteInterpreterGetOutputTensor(shared, 0), bytes, 10);
    }
    return NULL;
}

/* The header forbids it, and still: one interpreter on several threads, deleted by one of them. */
static void one_interpreter_on_threads(const TfLiteModel* model) {
    for (int round = 0; round < 5; round++) {
        pthread_t all[3];
        TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
        TfLiteInterpreterOptionsSetErrorReporter(options, quiet, NULL);
        shared = TfLiteInterpreterCreate(model, options);
        TfLiteInterpreterOptionsDelete(options);
        CHECK(TfLiteInterpreterAllocateTensors(shared) == kTfLiteOk);
        for (int i = 0; i < 3; i++) CHECK(pthread_create(&all[i], NULL, misusing, NULL) == 0);
        usleep(3000);
        TfLiteInterpreterDelete(shared);
        for (int i = 0; i < 3; i++) CHECK(pthread_join(all[i], NULL) == 0);
    }
}

/* A process that forks after it has run models: the child makes interpreters of its own, and uses the parent's. */
static void fork_after_load(const TfLiteModel* model) {
    TfLiteInterpreter* interpreter = ready(model);
    int expected = run(interpreter, 5);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(20);
        TfLiteInterpreter* other = ready(model);
        CHECK(run(other, 5) == expected);
        CHECK(run(interpreter, 5) == expected);
        TfLiteInterpreterDelete(other);
        TfLiteInterpreterDelete(interpreter);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(run(interpreter, 5) == expected);
    TfLiteInterpreterDelete(interpreter);
}

static volatile int stop;

static void* running(void* interpreter) {
    while (!stop) run(interpreter, 5);
    return NULL;
}

/* A process that is forked while a thread runs a model: a call answers with a status, and never hangs. */
static void fork_while_a_thread_is_inside(const TfLiteModel* model) {
    TfLiteInterpreter *busy = ready(model), *other = ready(model);
    int expected = run(other, 5);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, running, busy) == 0);
    for (int i = 0; i < 20; i++) {
        usleep(1000);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(20);
            if (TfLiteInterpreterInvoke(other) == kTfLiteOk) CHECK(run(other, 5) == expected);
            TfLiteInterpreterDelete(other);
            TfLiteInterpreterDelete(busy);
            _exit(0);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    stop = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(run(other, 5) == expected);
    TfLiteInterpreterDelete(busy);
    TfLiteInterpreterDelete(other);
}

/* Files with bytes that were changed: each is refused, or runs to some answer or a status. */
static void hostile_models(const char* path) {
    static char original[1 << 20], changed[1 << 20];
    FILE* file = fopen(path, "rb");
    CHECK(file);
    size_t size = fread(original, 1, sizeof original, file);
    CHECK(size > 1000 && size < sizeof original && fclose(file) == 0);
    unsigned random = 5, models = 0, runs = 0;
    for (int i = 0; i < 400; i++) {
        memcpy(changed, original, size);
        for (int j = 0; j < 3; j++) {
            random = random * 1664525u + 1013904223u;
            /* Tables are at both ends, weights between. */
            size_t at = random % 4096;
            if (random >> 31) at = size - 1 - at % size;
            changed[at % size] = (char)(random >> 16);
        }
        TfLiteModel* model = TfLiteModelCreate(changed, size);
        if (!model) continue;
        models++;
        TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
        TfLiteInterpreterOptionsSetErrorReporter(options, quiet, NULL);
        TfLiteInterpreter* interpreter = TfLiteInterpreterCreate(model, options);
        TfLiteInterpreterOptionsDelete(options);
        if (interpreter && TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteOk)
            runs += TfLiteInterpreterInvoke(interpreter) == kTfLiteOk;
        TfLiteInterpreterDelete(interpreter);
        TfLiteModelDelete(model);
    }
    CHECK(models < 400 && runs > 0);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    CHECK(sizeof(TfLiteTensor) == 112 && sizeof(TfLiteDelegate) == 56);
    TfLiteModel* model = TfLiteModelCreateFromFile(arguments[1]);
    CHECK(model && TfLiteSchemaVersion() == 3);
    order_and_sizes(model);
    no_models();
    delegates(model);
    memory_of_the_program(model);
    threads(model);
    /* What these say is expected. */
    CHECK(freopen("/dev/null", "w", stderr));
    one_interpreter_on_threads(model);
    hostile_models(arguments[1]);
    fork_after_load(model);
    fork_while_a_thread_is_inside(model);
    deleted(model);
    printf("misuse: every call answered\n");
    return 0;
}
