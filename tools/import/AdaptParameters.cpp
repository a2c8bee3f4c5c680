//===- AdaptParameters.cpp - Types and groups of a model's parameters -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Import.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/GlobPattern.h"

#include <set>

using namespace mlir;
using namespace zero;

namespace {
/// The patterns of an option. "1d" stands for every parameter of one dimension,
/// which in most models are the biases and the norms. "!PATTERN" takes out what
/// the patterns before it match, as in "*,!*lora_*".
class NamePatterns {
public:
  LogicalResult read(StringRef option, ArrayRef<std::string> texts,
                     std::string &message) {
    for (StringRef text : texts) {
      used.push_back(false);
      takesOut.push_back(text.consume_front("!"));
      names.push_back(text.str());
      llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(text);
      if (glob) {
        globs.push_back(std::move(*glob));
        continue;
      }
      message = ("--" + option + ": the pattern '" + text +
                 "' is wrong: " + toString(glob.takeError()))
                    .str();
      return failure();
    }
    return success();
  }
  bool match(const ListedParameter &parameter) {
    bool isIn = false;
    for (size_t i = 0; i < globs.size(); ++i)
      if ((names[i] == "1d" && parameter.shape.size() == 1) ||
          globs[i].match(parameter.name)) {
        used[i] = true;
        isIn = !takesOut[i];
      }
    return isIn;
  }
  /// Reports a pattern that no parameter matches: it is misspelt, mostly.
  LogicalResult checkUse(StringRef option, std::string &message) const {
    auto *it = llvm::find(used, false);
    if (it == used.end())
      return success();
    message = ("--" + option + ": no parameter matches '" +
               names[std::distance(used.begin(), it)] +
               "'; * stands for any text, and 1d for parameters of one "
               "dimension")
                  .str();
    return failure();
  }

private:
  std::vector<std::string> names;
  std::vector<llvm::GlobPattern> globs;
  llvm::SmallVector<bool> takesOut, used;
};
} // namespace

LogicalResult zero::adaptParameters(const ImportRequest &request,
                                    const ImportedConfig &config,
                                    ParameterList &list, std::string &message) {
  NamePatterns noDecay, frozen;
  if (failed(noDecay.read("no-decay", request.noDecay, message)) ||
      failed(frozen.read("frozen", request.frozen, message)))
    return failure();
  std::set<std::string> own; // groups of the list
  for (const ListedParameter &parameter : list.parameters)
    own.insert(parameter.group);
  for (const auto &entry : list.groups)
    own.insert(entry.first);
  for (ListedParameter &parameter : list.parameters) {
    parameter.dtype = parameter.gradient = config.dtype;
    if (frozen.match(parameter)) {
      parameter.isFrozen = true;
      parameter.isOptional = parameter.isSkippedIfAbsent = false;
      parameter.usesAny = false;
      parameter.uses = 1;
    }
    parameter.isOptional |= config.isEachOptional && !parameter.isFrozen;
    if (!noDecay.match(parameter))
      continue;
    std::string group =
        (parameter.group == "all" ? "" : parameter.group + ".") +
        std::string("no_decay");
    if (own.count(group)) {
      message = "--no-decay makes the group '" + group +
                "', and the model has a group of that name; give that one "
                "another name, or leave --no-decay out";
      return failure();
    }
    // Other hyperparameters of its group stay.
    if (auto it = list.groups.find(parameter.group); it != list.groups.end())
      list.groups.insert({group, it->second});
    HyperValue &wd = list.groups[group]["wd"];
    wd = {};
    parameter.group = group;
  }
  if (failed(noDecay.checkUse("no-decay", message)))
    return failure();
  return frozen.checkUse("frozen", message);
}
