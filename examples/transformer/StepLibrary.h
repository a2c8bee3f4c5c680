//===- StepLibrary.h - A compiled step, loaded at run time ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_STEPLIBRARY_H
#define ZERO_EXAMPLES_TRANSFORMER_STEPLIBRARY_H

#include "zero_rt/abi.h"

#include <string>

namespace transformer {

/// The calls of the generated header that this program uses. A program with one
/// fixed step would include out/train.h and link out/libtrain.so instead.
struct StepLibrary {
  zero_rt_status (*create)(zero_rt_runtime *, const void *, zero_rt_step **);
  zero_rt_status (*destroy)(zero_rt_step *);
  zero_rt_status (*findParameter)(zero_rt_step *, const char *, int32_t *);
  zero_rt_status (*bindParameter)(zero_rt_step *, int32_t,
                                  const zero_rt_tensor *);
  zero_rt_status (*parameter)(zero_rt_step *, int32_t, zero_rt_tensor *);
  zero_rt_status (*beginBackward)(zero_rt_step *, int32_t);
  zero_rt_status (*gradient)(zero_rt_step *, int32_t, const zero_rt_tensor *,
                             zero_rt_stream *, zero_rt_timepoint *);
  zero_rt_status (*accumulate)(zero_rt_step *);
  zero_rt_status (*apply)(zero_rt_step *, const double *, int32_t,
                          zero_rt_stream *);
  zero_rt_status (*lossScale)(zero_rt_step *, double *);
  zero_rt_status (*findActivation)(zero_rt_step *, const char *, int32_t *);
  zero_rt_status (*send)(zero_rt_step *, int32_t, int64_t,
                         const zero_rt_tensor *, const int64_t *,
                         zero_rt_stream *);
  zero_rt_status (*receive)(zero_rt_step *, int32_t, int64_t,
                            const zero_rt_tensor *, zero_rt_stream *);
  zero_rt_status (*results)(zero_rt_step *, zero_rt_results *);
};

/// Loads a library whose calls begin with train_. On failure returns false and
/// says why. It stays loaded until the program ends.
bool loadStep(const std::string &path, StepLibrary &out, std::string &error);

/// Ends the program with the message of a |call| that failed. Other ranks may
/// be waiting in a collective, so nothing is torn down.
void check(zero_rt_status status, const char *call, int rank);

/// Ends the program with |message|.
[[noreturn]] void fail(const std::string &message);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_STEPLIBRARY_H
