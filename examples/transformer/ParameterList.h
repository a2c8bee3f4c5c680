//===- ParameterList.h - The model's parameters as JSON ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_PARAMETERLIST_H
#define ZERO_EXAMPLES_TRANSFORMER_PARAMETERLIST_H

#include "examples/transformer/Parameters.h"

#include <string>

namespace transformer {

/// A list for `zero-compile --model`, with a unit for each layer if |units|.
std::string parameterListText(const ModelShape &shape, bool units);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_PARAMETERLIST_H
