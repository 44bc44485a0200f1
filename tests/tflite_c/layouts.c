/*
 * The sizes and places of what programs with kernels or delegates of their own compile against, on 64 bits: those of TensorFlow
 * Lite 2.17, by which LiteRT 2.3 lays them out too.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stddef.h>
#include <tensorflow/lite/c/c_api_experimental.h>

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define PLACE(type, field, bytes) _Static_assert(offsetof(type, field) == (bytes), #type "." #field)

SIZE(TfLiteContext, 200);
SIZE(TfLiteDelegate, 56);
SIZE(TfLiteDelegateParams, 32);
SIZE(TfLiteNode, 80);
SIZE(TfLiteOpaqueDelegateParams, 40);
SIZE(TfLiteRegistration, 88);
SIZE(TfLiteRegistration_V1, 64);
SIZE(TfLiteRegistration_V2, 72);
SIZE(TfLiteRegistration_V3, 80);
SIZE(TfLiteTensor, 112);
PLACE(TfLiteContext, GetExecutionPlan, 8);
PLACE(TfLiteContext, GetNodeAndRegistration, 56);
PLACE(TfLiteContext, recommended_num_threads, 72);
PLACE(TfLiteContext, allow_fp32_relax_to_fp16, 96);
PLACE(TfLiteContext, profiler, 104);
PLACE(TfLiteContext, PreviewDelegatePartitioning, 152);
PLACE(TfLiteContext, ReleaseSubgraphContext, 192);
PLACE(TfLiteNode, user_data, 32);
PLACE(TfLiteNode, custom_initial_data_size, 56);
PLACE(TfLiteNode, might_have_side_effect, 72);
PLACE(TfLiteRegistration, builtin_code, 40);
PLACE(TfLiteRegistration, registration_external, 64);
PLACE(TfLiteRegistration, inplace_operator, 80);

/* A registration as programs fill it in. */
static TfLiteStatus invoke(TfLiteContext* context, TfLiteNode* node) {
    TfLiteIntArray* plan;
    TfLiteRegistration* registration;
    if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return kTfLiteError;
    return context->GetNodeAndRegistration(context, plan->data[0], &node, &registration);
}

TfLiteRegistration nnhal_registration(void);

TfLiteRegistration nnhal_registration(void) {
    TfLiteRegistration registration = {0};
    registration.invoke = invoke;
    registration.builtin_code = -1;
    return registration;
}
