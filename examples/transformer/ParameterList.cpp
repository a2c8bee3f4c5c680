//===- ParameterList.cpp - The model's parameters as JSON -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/ParameterList.h"

namespace transformer {

std::string parameterListText(const ModelShape &shape, bool units) {
  std::string text = "{\"parameters\": [";
  const size_t endOfBlocks =
      FirstBlock + size_t(shape.layers) * BlockParameters;
  size_t i = 0;
  for (const Parameter &parameter : listParameters(shape)) {
    text += (i ? ",\n" : "\n") + ("  {\"name\": \"" + parameter.name) +
            "\", \"shape\": [" + std::to_string(parameter.rows);
    if (parameter.columns)
      text += ", " + std::to_string(parameter.columns);
    text += "], \"dtype\": \"f32\"";
    if (units && i >= FirstBlock && i < endOfBlocks)
      text += ", \"unit\": \"block" +
              std::to_string((i - FirstBlock) / BlockParameters) + "\"";
    text += "}";
    ++i;
  }
  return text + "\n]}\n";
}

} // namespace transformer
