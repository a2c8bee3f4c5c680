//===- StepText.cpp - Logical steps as text -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepText.h"

#include <fstream>
#include <iterator>

using namespace zero::test;

static std::string readExample(const std::string &path) {
  std::ifstream file(ZERO_EXAMPLES + path + ".mlir");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string zero::test::getOptimizer(const std::string &name) {
  return readExample("optimizers/" + name);
}

std::string zero::test::getLossScale(const std::string &name) {
  return readExample("loss_scales/" + name);
}

std::string zero::test::getSchedule(const std::string &name) {
  return readExample("schedules/" + name);
}

std::string zero::test::replaceWords(
    std::string text,
    const std::vector<std::pair<std::string, std::string>> &words) {
  for (auto &[from, to] : words) {
    size_t at = text.find(from);
    if (at == std::string::npos)
      return "'" + from + "' is not there, see " __FILE__;
    text.replace(at, from.size(), to);
  }
  return text;
}

/// What a gradient is still multiplied with: prescaled / normalize. Both hold
/// -1 at most, so an axis is left where only one of them names it.
static std::string getScale(const std::string &weight,
                            const std::string &arrives) {
  std::string scale;
  for (const char *axis : {"accumulation", "dp", "tokens"}) {
    auto names = [&](const std::string &monomial) {
      return monomial.find(axis) != std::string::npos;
    };
    int exponent = int(names(weight)) - int(names(arrives));
    if (exponent)
      scale += (scale.empty() ? "" : ", ") + std::string(axis) + " : " +
               std::to_string(exponent);
  }
  return scale.empty() ? "" : ", scaled = [" + scale + "]";
}

std::string StepText::print() const {
  const std::string n = std::to_string(parameters.size());
  auto list = [&](auto &&item) {
    std::string text;
    for (size_t i = 0; i < parameters.size(); ++i)
      text += (i ? ", " : "") + item(i);
    return text;
  };
  auto types = [&](const std::string &element, const std::string &rest) {
    return list([&](size_t i) {
      return "!zero.value<" + std::to_string(parameters[i].elements) + "x" +
             element + rest + ">";
    });
  };
  auto values = [&](const std::string &name) {
    return list([&](size_t i) { return name + "#" + std::to_string(i); });
  };
  std::string scale = getScale(weight, arrives);
  std::string multiplied = arrives;
  if (!lossScale.empty()) {
    multiplied += std::string(arrives.empty() ? "" : ", ") + "loss_scale : 1";
    scale = scale.empty()
                ? ", scaled = [loss_scale : 1]"
                : scale.insert(scale.find('[') + 1, "loss_scale : 1, ");
  }
  const std::string names =
      list([&](size_t i) { return "@" + parameters[i].name; });
  const std::string arriving =
      types(arrival, ", partial = [dp, micro]" + scale);
  const std::string reduced = types(accumulator, "");

  const bool hasTokens = weight.find("tokens") != std::string::npos;
  const std::string tokens =
      hasTokens ? ", %n: !zero.value<f64, partial = [dp]> {zero.tokens}" : "";

  const std::string updated = maxNorm > 0 ? "%c" : "%r";
  const std::string clip = maxNorm > 0 ? "  %c:" + n + " = zero.clip " +
                                             values("%r") + " by %norm max " +
                                             std::to_string(maxNorm) + " : " +
                                             reduced + " by !zero.value<f64>\n"
                                       : "";

  const std::string rate = schedule.empty() ? "%lr" : "%now";
  const std::string read =
      schedule.empty() ? "" : "  %now = zero.read_schedule @lr\n";
  const std::string results =
      schedule.empty()
          ? "[norm] %norm : !zero.value<f64>"
          : "[norm, lr] %norm, %now : !zero.value<f64>, !zero.value<f64>";

  std::string text =
      "zero.mesh @m <[\"dp\" = " + std::to_string(ranks) + "]>\n";
  for (const ParameterText &parameter : parameters)
    text += "zero.parameter @" + parameter.name + " : " +
            std::to_string(parameter.elements) + "x" + storage + " " +
            parameter.flags + "\n";
  return text + "zero.group @all [" + names + "]\n" + getOptimizer(optimizer) +
         lossScale + schedule + "zero.step @s on @m normalize(" + weight +
         ") " + nonfinite +
         (lossScale.empty() ? "" : " loss_scale @loss_scale") +
         " (%lr: !zero.value<f64>" + tokens + ") {\n" + //
         "  %g:" + n + " = zero.micro_batches in " + accumulator + " {\n" +
         "    %d:" + n + " = zero.backward(" + names + ") prescaled(" +
         multiplied + ") : " + arriving + "\n" + //
         "    zero.yield " + values("%d") + " : " + arriving + "\n  }\n" +
         "  %r:" + n + " = zero.reduce " + values("%g") +
         (wire.empty() ? "" : " reduce_dtype " + wire) + " : " +
         types(accumulator, ", partial = [dp]" + scale) + "\n" + //
         "  %norm = zero.norm " + values("%r") + " : " + reduced + "\n" + clip +
         read + "  zero.update @all with @" + optimizer + "(" +
         values(updated) + ") hyper(lr = " + rate + ", " +
         (optimizer == "sgd" ? "momentum = 0.0" : "wd = 0.0") + ") : (" +
         reduced + "), (!zero.value<f64>)\n" + "  zero.return " + results +
         "\n}\n";
}
