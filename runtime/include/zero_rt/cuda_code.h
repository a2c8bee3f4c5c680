//===- cuda_code.h - Executables for the device "cuda" -----------*- C -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The format of an executable whose target is a GPU of CUDA. zero-compile
// writes it, and the device reads it. Nothing else includes this header.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_CODE_H
#define ZERO_RT_CUDA_CODE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The target and the format of the executable. Its data is a
/// zero_rt_cuda_code_2. That of the format before is a zero_rt_cuda_code.
#define ZERO_RT_CUDA_TARGET "cuda"
#define ZERO_RT_CUDA_FORMAT "cuda-functions-2"
#define ZERO_RT_CUDA_FORMAT_1 "cuda-functions-1"

/// A piece of a launch, which a block or a warp of a CUDA kernel runs:
/// elements [begin, end) of the launched range, at most 4096. |scalars| is the
/// first scalar slot of the piece.
typedef struct zero_rt_cuda_piece {
  int64_t begin;
  int64_t end;
  int64_t scalars;
} zero_rt_cuda_piece;

/// A piece of a batch: elements [begin, end) of |operands|. |begin| is a
/// multiple of 4096.
typedef struct zero_rt_cuda_batch_piece {
  int64_t begin;
  int64_t end;
  void *operands[2];
} zero_rt_cuda_batch_piece;

/// A CUDA kernel. There are three kinds. The first kind computes the same bits
/// as a zero_rt_kernel_fn:
///
///   void name(T0 *operand0, ..., const double *slots,
///             const zero_rt_cuda_piece *pieces, int64_t num_pieces
///             [, double *partials, int32_t *arrivals, double *sum])
///
/// The grid has one dimension, num_pieces / pieces_per_block blocks, rounded
/// up, and ZERO_RT_CUDA_THREADS threads per block. Without pieces there is no
/// launch.
///
/// A reducing kernel has the last three parameters, and writes its sum to *sum:
///
/// - Each piece but the last has 4096 elements.
/// - The kernel writes the sums of the pieces to partials. Behind them it
///   writes the sums of groups of ZERO_RT_CUDA_SUM_GROUP such sums, and so on.
///   The last, single sum is not written to partials.
/// - arrivals has a counter for each of these groups, in the same order, and
///   for the last sum. The counters are 0 before and after the launch.
/// - partials, arrivals and sum do not overlap an operand, and no concurrent
///   launch uses them.
///
/// The second kind runs a zero_rt_scalar_fn in one thread:
///
///   void name(double *slots, int64_t num_given,
///             int64_t slot0, int64_t bits0, ...)
///
/// It has ZERO_RT_CUDA_MOST_GIVEN pairs of a slot and a value. The kernel
/// writes the first num_given values to their slots before it runs the program.
/// The host passes scalars to the GPU in this way. Its pieces_per_block is 0.
///
/// The third kind runs a kernel of the first kind that has two operands, and
/// neither a sum nor scalars, for the operands of each piece:
///
///   void name(const zero_rt_cuda_batch_piece *pieces, int64_t num_pieces)
///
/// Its grid is that of the first kind. No element is written for two pieces, or
/// written for one and read for another.
typedef struct zero_rt_cuda_function {
  const char *name;
  int64_t pieces_per_block;
} zero_rt_cuda_function;

#define ZERO_RT_CUDA_THREADS 256
#define ZERO_RT_CUDA_MOST_RANKS 16
#define ZERO_RT_CUDA_MOST_GIVEN 8
#define ZERO_RT_CUDA_SUM_GROUP 4096

/// What a sum over ranks does with the contents of its destination.
typedef enum zero_rt_rank_sum_kind {
  ZERO_RT_RANK_SUM_WRITE = 0,
  ZERO_RT_RANK_SUM_ADD = 1,     // adds the rounded sum
  ZERO_RT_RANK_SUM_CONTINUE = 2 // adds the addends, one by one
} zero_rt_rank_sum_kind;

/// A kernel that sums over ranks that can access each other's memory. Its
/// operands are one array of |dtype| for each rank, in order, and one array of
/// |sum_dtype|. Sums are computed in f64 for f64 and in f32 for all other
/// types, and are rounded once.
typedef struct zero_rt_cuda_rank_sum {
  int64_t dtype;
  int64_t sum_dtype;
  int64_t ranks;
  int64_t kind; // zero_rt_rank_sum_kind
  zero_rt_cuda_function function;
} zero_rt_cuda_rank_sum;

/// Machine code for one architecture, such as "sm_90".
typedef struct zero_rt_cubin {
  const char *arch;
  const void *data;
  int64_t bytes;
} zero_rt_cubin;

typedef struct zero_rt_cuda_code {
  const char *ptx; // zero-terminated
  int64_t num_cubins;
  const zero_rt_cubin *cubins;          // the same code per architecture
  const zero_rt_cuda_function *kernels; // as the library's kernels
  const zero_rt_cuda_function *scalar_programs; // as the library's
  zero_rt_cuda_function give_slots; // writes values, runs no program
  /// Kernels for the process groups of the plan's collectives. A process group
  /// of more than ZERO_RT_CUDA_MOST_RANKS ranks needs several kernels. The
  /// first one writes the sum of ZERO_RT_CUDA_MOST_RANKS ranks, in the type in
  /// which sums are computed. Others continue that sum with as many ranks, or
  /// with the rest. The last one writes or adds the result, as the sum of one
  /// array.
  int64_t num_rank_sums;
  const zero_rt_cuda_rank_sum *rank_sums;
} zero_rt_cuda_code;

/// The data of the present format.
typedef struct zero_rt_cuda_code_2 {
  zero_rt_cuda_code code;
  /// As |code.kernels|. The name is null if a kernel has no batch; those that
  /// pack gradients have one.
  const zero_rt_cuda_function *batches;
} zero_rt_cuda_code_2;

#ifdef __cplusplus
} // extern "C"
#endif

#endif // ZERO_RT_CUDA_CODE_H
