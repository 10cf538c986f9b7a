/* gpu_kernels.c - what runs on a GPU that is tested, in PTX, which every driver compiles for its own devices; nothing of CUDA's is needed to
 * build it. Each word of memory gets a value that its number determines, so that lines that are stuck, swapped or shared show:
 *
 *   fill(at, count, seed)          at[i] = lo(i) * 2654435761 ^ hi(i) ^ seed
 *   verify(at, count, seed, bad)   *bad grows by one for each word that is not that
 *   ramp(at, n, row, column, plus) n x n numbers: at[r][c] = r * row + c * column + plus
 *   product(a, b, c, n)            c = a b, in 32-bit integers, one number a thread
 *
 * Integers only: the result is exact, whatever order a device computes in. */
#include "agent/cuda_work.h"
#include <stdio.h>

#define FIRST_INDEX                             \
    " mov.u32 %a2,%ctaid.x;\n"                  \
    " mov.u32 %a3,%ntid.x;\n"                   \
    " mov.u32 %a4,%tid.x;\n"                    \
    " mov.u32 %a5,%nctaid.x;\n"                 \
    " mul.wide.u32 %d3,%a2,%a3;\n"              \
    " cvt.u64.u32 %d4,%a4;\n"                   \
    " add.u64 %d3,%d3,%d4;\n"                   \
    " mul.wide.u32 %d5,%a5,%a3;\n"
#define WORD_OF_INDEX                           \
    " cvt.u32.u64 %a6,%d3;\n"                   \
    " shr.u64 %d6,%d3,32;\n"                    \
    " cvt.u32.u64 %a7,%d6;\n"                   \
    " mul.lo.u32 %a6,%a6,0x9E3779B1;\n"         \
    " xor.b32 %a6,%a6,%a7;\n"                   \
    " xor.b32 %a6,%a6,%a1;\n"                   \
    " shl.b64 %d6,%d3,2;\n"                     \
    " add.u64 %d6,%d1,%d6;\n"

static const char kernels[] =
    ".visible .entry fill(.param .u64 p,.param .u64 n,.param .u32 s)\n{\n"
    " .reg .pred %q;\n .reg .b32 %a<8>;\n .reg .b64 %d<8>;\n"
    " ld.param.u64 %d1,[p];\n ld.param.u64 %d2,[n];\n ld.param.u32 %a1,[s];\n"
    " cvta.to.global.u64 %d1,%d1;\n"
    FIRST_INDEX
    "L1:\n setp.ge.u64 %q,%d3,%d2;\n @%q bra L2;\n"
    WORD_OF_INDEX
    " st.global.u32 [%d6],%a6;\n"
    " add.u64 %d3,%d3,%d5;\n bra L1;\n"
    "L2:\n ret;\n}\n"

    ".visible .entry verify(.param .u64 p,.param .u64 n,.param .u32 s,.param .u64 o)\n{\n"
    " .reg .pred %q;\n .reg .b32 %a<10>;\n .reg .b64 %d<8>;\n"
    " ld.param.u64 %d1,[p];\n ld.param.u64 %d2,[n];\n ld.param.u32 %a1,[s];\n ld.param.u64 %d7,[o];\n"
    " cvta.to.global.u64 %d1,%d1;\n cvta.to.global.u64 %d7,%d7;\n"
    FIRST_INDEX
    "L1:\n setp.ge.u64 %q,%d3,%d2;\n @%q bra L2;\n"
    WORD_OF_INDEX
    " ld.global.u32 %a8,[%d6];\n"
    " add.u64 %d3,%d3,%d5;\n"
    " setp.eq.u32 %q,%a8,%a6;\n @%q bra L1;\n"
    " red.global.add.u32 [%d7],1;\n bra L1;\n"
    "L2:\n ret;\n}\n"

    ".visible .entry ramp(.param .u64 p,.param .u32 n,.param .u32 r,.param .u32 c,.param .u32 s)\n{\n"
    " .reg .pred %q;\n .reg .b32 %a<12>;\n .reg .b64 %d<8>;\n"
    " ld.param.u64 %d1,[p];\n ld.param.u32 %a1,[n];\n ld.param.u32 %a8,[r];\n ld.param.u32 %a9,[c];\n ld.param.u32 %a10,[s];\n"
    " cvta.to.global.u64 %d1,%d1;\n mul.wide.u32 %d2,%a1,%a1;\n"
    FIRST_INDEX
    "L1:\n setp.ge.u64 %q,%d3,%d2;\n @%q bra L2;\n"
    " cvt.u32.u64 %a6,%d3;\n"
    " div.u32 %a7,%a6,%a1;\n"
    " rem.u32 %a6,%a6,%a1;\n"
    " mad.lo.u32 %a11,%a7,%a8,%a10;\n"
    " mad.lo.u32 %a11,%a6,%a9,%a11;\n"
    " shl.b64 %d6,%d3,2;\n add.u64 %d6,%d1,%d6;\n st.global.u32 [%d6],%a11;\n"
    " add.u64 %d3,%d3,%d5;\n bra L1;\n"
    "L2:\n ret;\n}\n"

    ".visible .entry product(.param .u64 x,.param .u64 y,.param .u64 z,.param .u32 n)\n{\n"
    " .reg .pred %q;\n .reg .b32 %a<12>;\n .reg .b64 %d<10>;\n"
    " ld.param.u64 %d1,[x];\n ld.param.u64 %d2,[y];\n ld.param.u64 %d3,[z];\n ld.param.u32 %a1,[n];\n"
    " cvta.to.global.u64 %d1,%d1;\n cvta.to.global.u64 %d2,%d2;\n cvta.to.global.u64 %d3,%d3;\n"
    " mov.u32 %a2,%ctaid.x;\n mov.u32 %a3,%ntid.x;\n mov.u32 %a4,%tid.x;\n mad.lo.u32 %a5,%a2,%a3,%a4;\n"
    " mov.u32 %a2,%ctaid.y;\n mov.u32 %a3,%ntid.y;\n mov.u32 %a4,%tid.y;\n mad.lo.u32 %a6,%a2,%a3,%a4;\n"
    " setp.ge.u32 %q,%a5,%a1;\n @%q bra L2;\n setp.ge.u32 %q,%a6,%a1;\n @%q bra L2;\n"
    " mul.wide.u32 %d4,%a6,%a1;\n shl.b64 %d4,%d4,2;\n add.u64 %d1,%d1,%d4;\n"
    " cvt.u64.u32 %d5,%a5;\n shl.b64 %d5,%d5,2;\n add.u64 %d2,%d2,%d5;\n"
    " add.u64 %d3,%d3,%d4;\n add.u64 %d3,%d3,%d5;\n"
    " mul.wide.u32 %d6,%a1,4;\n"
    " mov.u32 %a7,0;\n mov.u32 %a8,0;\n"
    "L1:\n ld.global.u32 %a9,[%d1];\n ld.global.u32 %a10,[%d2];\n mad.lo.u32 %a7,%a9,%a10,%a7;\n"
    " add.u64 %d1,%d1,4;\n add.u64 %d2,%d2,%d6;\n add.u32 %a8,%a8,1;\n"
    " setp.lt.u32 %q,%a8,%a1;\n @%q bra L1;\n"
    " st.global.u32 [%d3],%a7;\n"
    "L2:\n ret;\n}\n";
_Static_assert(sizeof kernels + 128 < GPU_KERNELS_BYTES, "they fit");

/* The oldest language that all devices take which a driver of today serves, and an older one for older ones. */
void gpu_kernels(int major, int minor, char *out, size_t room)
{
    bool turing = major * 10 + minor >= 75;
    snprintf(out, room, ".version %s\n.target %s\n.address_size 64\n%s", turing ? "6.3" : "5.0", turing ? "sm_75" : "sm_50", kernels);
}
