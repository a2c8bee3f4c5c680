//===- CpuName.cpp - The CPUs that code is generated for ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/EmitObject.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;

/// The features of a level that vector code uses, beyond the previous level.
static constexpr llvm::StringLiteral kV3Features[] = {"avx",  "avx2", "bmi",
                                                      "bmi2", "f16c", "fma"};
static constexpr llvm::StringLiteral kV4Features[] = {
    "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};

std::string zero::resolveCpuName(StringRef cpu) {
  if (cpu != "native")
    return cpu.str();
  // Uses a level, not the name of the CPU. The name would enable features that
  // the runtime does not check before it runs a library.
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  auto hasFeature = [&](StringRef name) { return host.lookup(name); };
  if (!llvm::all_of(kV3Features, hasFeature))
    return "";
  return llvm::all_of(kV4Features, hasFeature) ? "x86-64-v4" : "x86-64-v3";
}

LogicalResult zero::checkCpuName(StringRef cpu, std::string &errorMessage) {
  std::string name = resolveCpuName(cpu);
  if (name == "x86-64-v3" || name == "x86-64-v4")
    return success();
  errorMessage =
      name.empty()
          ? "this machine cannot run code for x86-64-v3, so that cpu 'native' "
            "does not exist; name the cpu of the machine that will run it"
          : "cpu '" + name +
                "' is unknown; expected x86-64-v3, x86-64-v4 or native";
  return failure();
}

std::string zero::cpuFeatureList(StringRef cpu) {
  std::string ignored;
  if (failed(checkCpuName(cpu, ignored)))
    return "";
  std::string features = llvm::join(ArrayRef(kV3Features), ",");
  if (resolveCpuName(cpu) == "x86-64-v4")
    features += "," + llvm::join(ArrayRef(kV4Features), ",");
  return features;
}
