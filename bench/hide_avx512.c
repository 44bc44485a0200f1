// Answers the instruction CPUID as a processor of the same kind without AVX-512, AVX-VNNI, AVX10 and AMX would;
// with KEEP_AVX_VNNI=1 in its environment as one with AVX-VNNI, with ONLY_AMX=1 as one that has all but AMX.
// hide_avx512.py replaces CPUID by the undefined instruction UD2, which is as long; this library, loaded before the
// program by LD_PRELOAD, handles the signal that UD2 raises.
//
//     gcc -O2 -shared -fPIC hide_avx512.c -o libhide_avx512.so

#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

// Bits of leaf 7 of CPUID (Intel's Software Developer's Manual, volume 2A, "CPUID").
enum {
    EBX_0 = 1 << 16 | 1 << 17 | 1 << 21 | 1 << 26 | 1 << 27 | 1 << 28 | 1 << 30 | 1 << 31, // F DQ IFMA PF ER CD BW VL
    ECX_0 = 1 << 1 | 1 << 6 | 1 << 11 | 1 << 12 | 1 << 14,              // VBMI VBMI2 VNNI BITALG VPOPCNTDQ
    EDX_0 = 1 << 2 | 1 << 3 | 1 << 8 | 1 << 22 | 1 << 23 | 1 << 24 | 1 << 25, // 4VNNIW 4FMAPS VP2INTERSECT AMX FP16
    EAX_1 = 1 << 4 | 1 << 5 | 1 << 21 | 1 << 23,                        // AVX-VNNI AVX512-BF16 AMX-FP16 AVX-IFMA
    EDX_1 = 1 << 4 | 1 << 5 | 1 << 8 | 1 << 10 | 1 << 19,               // AVX-VNNI-INT8 NE-CONVERT AMX INT16 AVX10
};

enum { AVX_VNNI = 1 << 4 }; // Of EAX_1.
enum { AMX_EDX_0 = 1 << 22 | 1 << 24 | 1 << 25, AMX_EAX_1 = 1 << 21, AMX_EDX_1 = 1 << 8 }; // BF16 TILE INT8, FP16, COMPLEX

static struct { unsigned ebx_0, ecx_0, edx_0, eax_1, edx_1; } hidden = {EBX_0, ECX_0, EDX_0, EAX_1, EDX_1};

static void answer(int signal_number, siginfo_t *info, void *context) {
    (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)registers[REG_RIP];
    if (code[0] != 0x0f || code[1] != 0x0b) { // An instruction that is undefined indeed.
        signal(signal_number, SIG_DFL);
        return;
    }
    unsigned leaf = registers[REG_RAX], subleaf = registers[REG_RCX], a, b, c, d;
    __cpuid_count(leaf, subleaf, a, b, c, d);
    if (leaf == 7 && subleaf == 0) {
        b &= ~hidden.ebx_0;
        c &= ~hidden.ecx_0;
        d &= ~hidden.edx_0;
    } else if (leaf == 7 && subleaf == 1) {
        a &= ~hidden.eax_1;
        d &= ~hidden.edx_1;
    }
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void) {
    if (getenv("KEEP_AVX_VNNI")) {
        hidden.eax_1 &= ~AVX_VNNI;
    }
    if (getenv("ONLY_AMX")) {
        hidden.ebx_0 = hidden.ecx_0 = 0;
        hidden.edx_0 = AMX_EDX_0;
        hidden.eax_1 = AMX_EAX_1;
        hidden.edx_1 = AMX_EDX_1;
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = answer;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGILL, &action, 0);
}
