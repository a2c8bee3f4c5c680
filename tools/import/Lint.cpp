//===- Lint.cpp - What a configuration of DeepSpeed really does -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Lint.h"
#include "tools/import/Precision.h"
#include "tools/import/ReadJson.h"

using namespace zero;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

static constexpr Severity kSeverities[] = {Severity::error, Severity::warning,
                                           Severity::note};

LintContext::LintContext(const ImportRequest &request, const json::Object &root,
                         ImportedStep &step)
    : request(request), step(step), reader(root, step.config, errors) {
  stage = reader.getInteger("zero_optimization.stage").value_or(0);
  isHalf = isOn("fp16.enabled");
  isBrain = isOn(findBrainEnabled(reader));
  StringRef device =
      reader.getString("zero_optimization.offload_optimizer.device")
          .value_or("none");
  isOffloaded = device != "none" || isOn("zero_optimization.cpu_offload");
}

std::string LintContext::getOptimizer() const {
  return reader.getString("optimizer.type").value_or("").lower();
}

void LintContext::add(Severity severity, StringRef key, const Twine &what,
                      const Twine &remedy, StringRef reference) {
  findings.push_back(
      {severity, cutText(key), what.str(), remedy.str(), reference.str()});
}

void LintContext::addError(const ConfigError &error) {
  auto [what, remedy] = StringRef(error.text).rsplit("; ");
  add(Severity::error, error.key, what, remedy);
}

std::vector<Finding> zero::lintConfig(const ImportRequest &request,
                                      const json::Object &root,
                                      ImportedStep &step, Errors &errors) {
  LintContext context(request, root, step);
  lintImport(context, errors);
  lintKeys(context);
  lintUnread(context);
  lintContradictions(context);
  lintDefaults(context);
  lintBugs(context);
  std::vector<Finding> inOrder;
  for (Severity severity : kSeverities)
    for (const Finding &finding : context.findings)
      if (finding.severity == severity)
        inOrder.push_back(finding);
  return inOrder;
}

static StringRef getName(Severity severity) {
  constexpr StringRef names[] = {"error", "warning", "note"};
  return names[static_cast<size_t>(severity)];
}

void zero::printFindings(llvm::ArrayRef<Finding> findings, StringRef file,
                         llvm::raw_ostream &os) {
  size_t counts[std::size(kSeverities)] = {};
  for (const Finding &finding : findings) {
    ++counts[static_cast<size_t>(finding.severity)];
    os << getName(finding.severity) << ": ";
    if (!finding.key.empty())
      os << "'" << finding.key << "' ";
    os << finding.what;
    if (!finding.reference.empty())
      os << " (" << finding.reference << ")";
    os << "\n";
    if (!finding.remedy.empty())
      os << "    " << finding.remedy << "\n";
  }
  os << file << ": ";
  for (Severity severity : kSeverities) {
    size_t count = counts[static_cast<size_t>(severity)];
    os << (severity == Severity::error ? "" : ", ") << count << " "
       << getName(severity) << (count == 1 ? "" : "s");
  }
  os << "\n";
}

json::Array zero::listFindings(llvm::ArrayRef<Finding> findings) {
  json::Array list;
  for (const Finding &finding : findings) {
    json::Object object{{"severity", getName(finding.severity)},
                        {"key", finding.key},
                        {"what", finding.what},
                        {"remedy", finding.remedy}};
    if (!finding.reference.empty())
      object["reference"] = finding.reference;
    list.push_back(std::move(object));
  }
  return list;
}
