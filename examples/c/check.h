/* What both examples do with a result code that is not ANEURALNETWORKS_NO_ERROR: say why, and end. */
#ifndef EXAMPLES_CHECK_H
#define EXAMPLES_CHECK_H

#include <nnhal.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                \
    do {                                                                           \
        if ((call) != ANEURALNETWORKS_NO_ERROR) {                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, nnhal_lastError()); \
            exit(EXIT_FAILURE);                                                    \
        }                                                                          \
    } while (0)

#endif
