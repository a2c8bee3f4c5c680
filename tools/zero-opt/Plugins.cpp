//===- Plugins.cpp - Files that hold passes or dialects -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-opt/Plugins.h"

#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;

/// The error of the |kind| of plugin in the file |path|, whose function is
/// |entry|, or "".
template <typename PluginT>
static std::string check(const std::string &path, StringRef kind,
                         const char *entry) {
  std::string reason;
  auto library =
      llvm::sys::DynamicLibrary::getPermanentLibrary(path.c_str(), &reason);
  if (library.isValid() && !library.getAddressOfSymbol(entry))
    return ("'" + path + "' is no " + kind + " plugin: it has no function " +
            entry + "; zero_opt_add_passes of CMake builds plugins")
        .str();
  if (library.isValid()) {
    llvm::Expected<PluginT> plugin = PluginT::load(path);
    if (plugin)
      return "";
    reason = llvm::toString(plugin.takeError());
  }
  StringRef text(reason);
  text.consume_front(path + ": ");
  std::string message =
      ("cannot load " + kind + " plugin '" + path + "': " + text.rtrim(".\n"))
          .str();
  // A name without a folder is searched for in the folders of the system.
  if (!StringRef(path).contains('/') && llvm::sys::fs::exists(path))
    message += "; write './" + path + "'";
  return message;
}

std::string zero::findMissingPlugin(int argc, char **argv) {
  for (int i = 1; i < argc && StringRef(argv[i]) != "--"; ++i) {
    StringRef option(argv[i]);
    if (!option.starts_with("-"))
      continue;
    auto [name, path] = option.ltrim('-').split('=');
    bool isPass = name == "load-pass-plugin";
    if (!isPass && name != "load-dialect-plugin")
      continue;
    if (!option.contains('=')) {
      if (++i == argc)
        return ""; // an option without a value is reported as one
      path = argv[i];
    }
    std::string message =
        isPass ? check<PassPlugin>(path.str(), "pass", "mlirGetPassPluginInfo")
               : check<DialectPlugin>(path.str(), "dialect",
                                      "mlirGetDialectPluginInfo");
    if (!message.empty())
      return message;
  }
  return "";
}
