/*
 * Reads a .tflite file with the C API of TensorFlow Lite, gives its first input a ramp and prints its outputs. The
 * program runs with the stock library and with that of nnhal.
 *
 *     cc examples/c/tflite.c $(pkg-config --cflags --libs tensorflowlite_c) -o tflite
 *     ./tflite assets/digits/digits_float.tflite
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensorflow/lite/c/c_api.h"
#include "tensorflow/lite/c/common.h"

static void report(void* user_data, const char* format, va_list arguments) {
    (void)user_data;
    fputs("the library says: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

/* A ramp from 0 to 1, as the stored values of the tensor's type. */
static void fill(TfLiteTensor* tensor) {
    size_t bytes = TfLiteTensorByteSize(tensor);
    if (TfLiteTensorType(tensor) == kTfLiteFloat32) {
        float* values = TfLiteTensorData(tensor);
        for (size_t i = 0; i < bytes / sizeof(float); i++) values[i] = (float)i * 4 / (float)bytes;
    } else {
        unsigned char* values = malloc(bytes);
        for (size_t i = 0; i < bytes; i++) values[i] = (unsigned char)(i * 127 / bytes);
        if (TfLiteTensorCopyFromBuffer(tensor, values, bytes) != kTfLiteOk) exit(1);
        free(values);
    }
}

static void print(const TfLiteTensor* tensor) {
    printf("%s %s [", TfLiteTensorName(tensor), TfLiteTypeGetName(TfLiteTensorType(tensor)));
    size_t count = 1;
    for (int axis = 0; axis < TfLiteTensorNumDims(tensor); axis++) {
        printf("%s%d", axis ? ", " : "", TfLiteTensorDim(tensor, axis));
        count *= (size_t)TfLiteTensorDim(tensor, axis);
    }
    printf("]:");
    /* The fields of the structure are the program's to read, too. */
    if (tensor->dims->size != TfLiteTensorNumDims(tensor) || tensor->bytes != TfLiteTensorByteSize(tensor)) exit(1);
    for (size_t i = 0; i < count && i < 16; i++) {
        if (tensor->type == kTfLiteFloat32)
            printf(" %.4f", tensor->data.f[i]);
        else if (tensor->type == kTfLiteInt8)
            printf(" %.4f", tensor->params.scale * (float)(tensor->data.int8[i] - tensor->params.zero_point));
        else if (tensor->type == kTfLiteUInt8)
            printf(" %.4f", tensor->params.scale * (float)(tensor->data.uint8[i] - tensor->params.zero_point));
    }
    printf("\n");
}

int main(int count, char** arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: %s MODEL\n", arguments[0]);
        return 2;
    }
    TfLiteModel* model = TfLiteModelCreateFromFile(arguments[1]);
    if (!model) return 1;
    TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
    TfLiteInterpreterOptionsSetNumThreads(options, 2);
    TfLiteInterpreterOptionsSetErrorReporter(options, report, NULL);
    TfLiteInterpreter* interpreter = TfLiteInterpreterCreate(model, options);
    /* Neither is needed any more. */
    TfLiteInterpreterOptionsDelete(options);
    TfLiteModelDelete(model);
    if (!interpreter || TfLiteInterpreterAllocateTensors(interpreter) != kTfLiteOk) return 1;
    fill(TfLiteInterpreterGetInputTensor(interpreter, 0));
    if (TfLiteInterpreterInvoke(interpreter) != kTfLiteOk) return 1;
    for (int i = 0; i < TfLiteInterpreterGetOutputTensorCount(interpreter); i++)
        print(TfLiteInterpreterGetOutputTensor(interpreter, i));
    TfLiteInterpreterDelete(interpreter);
    return 0;
}
