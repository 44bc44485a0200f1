/*
 * Reads handwritten digits: builds a convolutional network by hand, its weights in shared memory,
 * and runs it on 450 real scans that it was not trained on.
 *
 *     cc digits.c $(pkg-config --cflags --libs neuralnetworks) -o digits
 *     ./digits digits.weights ../../assets/digits
 *
 * The network is that of assets/digits, whose README says where the scans come from.
 */
#include "check.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIXELS = 8 * 8, DIGITS = 10, SCANS = 450, NPY_HEADER = 128 };

/* A model under construction, and how much of the weights is in use. */
typedef struct {
    ANeuralNetworksModel* model;
    ANeuralNetworksMemory* weights;
    size_t used;
    uint32_t operands;
} Network;

/* ---- One operand ---- */

static uint32_t tensor(Network* network, uint32_t rank, const uint32_t* dimensions) {
    const ANeuralNetworksOperandType type = {.type = ANEURALNETWORKS_TENSOR_FLOAT32,
                                             .dimensionCount = rank,
                                             .dimensions = dimensions};
    CHECK(ANeuralNetworksModel_addOperand(network->model, &type));
    return network->operands++;
}

static uint32_t image(Network* network, uint32_t height, uint32_t width, uint32_t depth) {
    return tensor(network, 4, (uint32_t[]){1, height, width, depth});
}

static uint32_t integer(Network* network, int32_t value) {
    const ANeuralNetworksOperandType type = {.type = ANEURALNETWORKS_INT32};
    CHECK(ANeuralNetworksModel_addOperand(network->model, &type));
    CHECK(ANeuralNetworksModel_setOperandValue(network->model, (int32_t)network->operands, &value,
                                               sizeof value));
    return network->operands++;
}

static uint32_t real(Network* network, float value) {
    const ANeuralNetworksOperandType type = {.type = ANEURALNETWORKS_FLOAT32};
    CHECK(ANeuralNetworksModel_addOperand(network->model, &type));
    CHECK(ANeuralNetworksModel_setOperandValue(network->model, (int32_t)network->operands, &value,
                                               sizeof value));
    return network->operands++;
}

/* The next weights of the file. */
static uint32_t weights(Network* network, uint32_t rank, const uint32_t* dimensions) {
    size_t size = sizeof(float);
    for (uint32_t i = 0; i < rank; i++) size *= dimensions[i];
    const uint32_t operand = tensor(network, rank, dimensions);
    CHECK(ANeuralNetworksModel_setOperandValueFromMemory(network->model, (int32_t)operand,
                                                         network->weights, network->used, size));
    network->used += size;
    return operand;
}

/* ---- One layer: what it takes, what it gives ---- */

static void operation(Network* network, ANeuralNetworksOperationType type, uint32_t count,
                      const uint32_t* arguments, uint32_t result) {
    CHECK(ANeuralNetworksModel_addOperation(network->model, type, count, arguments, 1, &result));
}

static uint32_t convolution(Network* network, uint32_t from, uint32_t size, uint32_t kernel,
                            uint32_t depth_in, uint32_t depth, FuseCode activation) {
    const uint32_t filter = weights(network, 4, (uint32_t[]){depth, kernel, kernel, depth_in});
    const uint32_t bias = weights(network, 1, (uint32_t[]){depth});
    const uint32_t one = integer(network, 1);
    const uint32_t arguments[] = {
            from, filter, bias, integer(network, ANEURALNETWORKS_PADDING_SAME), one, one,
            integer(network, (int32_t)activation)};
    const uint32_t to = image(network, size, size, depth);
    operation(network, ANEURALNETWORKS_CONV_2D, 7, arguments, to);
    return to;
}

/* A filter of its own for each channel. */
static uint32_t depthwise(Network* network, uint32_t from, uint32_t size, uint32_t depth) {
    const uint32_t filter = weights(network, 4, (uint32_t[]){1, 3, 3, depth});
    const uint32_t bias = weights(network, 1, (uint32_t[]){depth});
    const uint32_t one = integer(network, 1);
    const uint32_t arguments[] = {
            from, filter, bias, integer(network, ANEURALNETWORKS_PADDING_SAME), one, one, one,
            integer(network, ANEURALNETWORKS_FUSED_RELU)};
    const uint32_t to = image(network, size, size, depth);
    operation(network, ANEURALNETWORKS_DEPTHWISE_CONV_2D, 8, arguments, to);
    return to;
}

/* Half the size: the largest or the mean of each 2 x 2 pixels. */
static uint32_t pool(Network* network, OperationCode type, uint32_t from, uint32_t size,
                     uint32_t depth) {
    const uint32_t two = integer(network, 2);
    const uint32_t arguments[] = {
            from, integer(network, ANEURALNETWORKS_PADDING_VALID), two, two, two, two,
            integer(network, ANEURALNETWORKS_FUSED_NONE)};
    const uint32_t to = image(network, size / 2, size / 2, depth);
    operation(network, (ANeuralNetworksOperationType)type, 7, arguments, to);
    return to;
}

static uint32_t add(Network* network, uint32_t one, uint32_t other, uint32_t size, uint32_t depth) {
    const uint32_t arguments[] = {one, other, integer(network, ANEURALNETWORKS_FUSED_RELU)};
    const uint32_t to = image(network, size, size, depth);
    operation(network, ANEURALNETWORKS_ADD, 3, arguments, to);
    return to;
}

static uint32_t dense(Network* network, uint32_t from, uint32_t length_in, uint32_t length) {
    /* FULLY_CONNECTED takes its input of any rank as a list. */
    const uint32_t filter = weights(network, 2, (uint32_t[]){length, length_in});
    const uint32_t bias = weights(network, 1, (uint32_t[]){length});
    const uint32_t arguments[] = {from, filter, bias,
                                  integer(network, ANEURALNETWORKS_FUSED_NONE)};
    const uint32_t to = tensor(network, 2, (uint32_t[]){1, length});
    operation(network, ANEURALNETWORKS_FULLY_CONNECTED, 4, arguments, to);
    return to;
}

static uint32_t softmax(Network* network, uint32_t from, uint32_t length) {
    const uint32_t arguments[] = {from, real(network, 1)};
    const uint32_t to = tensor(network, 2, (uint32_t[]){1, length});
    operation(network, ANEURALNETWORKS_SOFTMAX, 2, arguments, to);
    return to;
}

static ANeuralNetworksModel* build(ANeuralNetworksMemory* memory, size_t size) {
    Network network = {.weights = memory};
    CHECK(ANeuralNetworksModel_create(&network.model));
    const uint32_t input = image(&network, 8, 8, 1);
    uint32_t x = convolution(&network, input, 8, 3, 1, 16, ANEURALNETWORKS_FUSED_RELU);
    const uint32_t branch = convolution(&network, x, 8, 3, 16, 32, ANEURALNETWORKS_FUSED_RELU);
    x = depthwise(&network, branch, 8, 32);
    x = convolution(&network, x, 8, 1, 32, 32, ANEURALNETWORKS_FUSED_NONE);
    x = add(&network, branch, x, 8, 32);
    x = pool(&network, ANEURALNETWORKS_MAX_POOL_2D, x, 8, 32);
    x = depthwise(&network, x, 4, 32);
    x = convolution(&network, x, 4, 1, 32, 64, ANEURALNETWORKS_FUSED_RELU);
    x = pool(&network, ANEURALNETWORKS_AVERAGE_POOL_2D, x, 4, 64);
    x = dense(&network, x, 2 * 2 * 64, DIGITS);
    const uint32_t output = softmax(&network, x, DIGITS);
    if (network.used != size) {
        fprintf(stderr, "the network has %zu bytes of weights, the file %zu\n", network.used, size);
        exit(EXIT_FAILURE);
    }
    CHECK(ANeuralNetworksModel_identifyInputsAndOutputs(network.model, 1, &input, 1, &output));
    CHECK(ANeuralNetworksModel_finish(network.model));
    return network.model;
}

/* The content of a .npy file of bytes. */
static void read_bytes(const char* folder, const char* name, uint8_t* bytes, size_t count) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE* file = fopen(path, "rb");
    if (!file || fseek(file, NPY_HEADER, SEEK_SET) != 0 || fread(bytes, 1, count, file) != count) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fclose(file);
}

int main(int count, char** arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: %s digits.weights FOLDER_OF_SCANS\n", arguments[0]);
        return EXIT_FAILURE;
    }
    static uint8_t scans[SCANS][PIXELS], labels[SCANS];
    read_bytes(arguments[2], "held_out_images.npy", &scans[0][0], sizeof scans);
    read_bytes(arguments[2], "held_out_labels.npy", labels, sizeof labels);

    struct stat information;
    const int file = open(arguments[1], O_RDONLY);
    if (file < 0 || fstat(file, &information) != 0) {
        perror(arguments[1]);
        return EXIT_FAILURE;
    }
    const size_t size = (size_t)information.st_size;
    ANeuralNetworksMemory* memory;
    CHECK(ANeuralNetworksMemory_createFromFd(size, PROT_READ, file, 0, &memory));
    close(file);

    ANeuralNetworksModel* model = build(memory, size);
    ANeuralNetworksCompilation* compilation;
    CHECK(ANeuralNetworksCompilation_create(model, &compilation));
    CHECK(ANeuralNetworksCompilation_finish(compilation));

    float pixels[PIXELS], probabilities[DIGITS];
    ANeuralNetworksExecution* execution;
    CHECK(ANeuralNetworksExecution_create(compilation, &execution));
    CHECK(ANeuralNetworksExecution_setReusable(execution, true));
    CHECK(ANeuralNetworksExecution_setInput(execution, 0, NULL, pixels, sizeof pixels));
    CHECK(ANeuralNetworksExecution_setOutput(execution, 0, NULL, probabilities,
                                             sizeof probabilities));
    int right = 0;
    for (int i = 0; i < SCANS; i++) {
        for (int j = 0; j < PIXELS; j++) pixels[j] = (float)scans[i][j] / 255;
        CHECK(ANeuralNetworksExecution_compute(execution));
        int best = 0;
        for (int digit = 1; digit < DIGITS; digit++) {
            if (probabilities[digit] > probabilities[best]) best = digit;
        }
        if (best == labels[i]) {
            right++;
        } else {
            printf("scan %d is a %d, taken for a %d\n", i, labels[i], best);
        }
    }
    printf("%d of %d scans read right\n", right, SCANS);

    ANeuralNetworksExecution_free(execution);
    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
    ANeuralNetworksMemory_free(memory);
    /* What LiteRT gets right with the same network. */
    return right == 446 ? EXIT_SUCCESS : EXIT_FAILURE;
}
