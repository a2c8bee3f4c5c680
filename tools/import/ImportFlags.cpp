//===- ImportFlags.cpp - The flags of an import ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/ImportFlags.h"

using namespace mlir;
using namespace zero;
namespace cl = llvm::cl;

ImportFlags::ImportFlags(cl::OptionCategory &category)
    : config("import-deepspeed", cl::cat(category),
             cl::value_desc("ds_config.json"),
             cl::desc("Configuration of DeepSpeed; needs --model")),
      model("model", cl::cat(category), cl::value_desc("file"),
            cl::desc("Parameters of an import: a list as for --parameters, a "
                     "file of\nsafetensors, its *.index.json, or a "
                     "config.json of transformers")),
      changes("set", cl::cat(category), cl::value_desc("KEY=VALUE"),
              cl::desc("Sets a key of the configuration, such as\n"
                       "--set=optimizer.params.lr=3e-4")),
      noDecay("no-decay", cl::cat(category), cl::CommaSeparated,
              cl::value_desc("PATTERN,..."),
              cl::desc("Parameters without weight decay, such as\n"
                       "'*.bias,*norm*'; 1d: all of one dimension;\n"
                       "!PATTERN: not these")),
      frozen("frozen", cl::cat(category), cl::CommaSeparated,
             cl::value_desc("PATTERN,..."),
             cl::desc("Parameters that are not trained; '*,!*lora_*': all but "
                      "adapters")),
      shards("shard", cl::cat(category), cl::CommaSeparated,
             cl::value_desc("PATTERN=DIM,..."),
             cl::desc("The dimension that the axis tp of --mesh divides; none: "
                      "all ranks\nhave the same gradient; partial: each has "
                      "a part, and the parts add\nup. By default as Megatron "
                      "for names of transformers")),
      experts("experts", cl::cat(category), cl::CommaSeparated,
              cl::value_desc("PATTERN=FORM,..."),
              cl::desc("How the axis ep of --mesh divides parameters of "
                       "experts: each, local,\nstacked or none; by default "
                       "by names such as experts.3.w1")),
      pipelineStages("pipeline-stage", cl::cat(category), cl::CommaSeparated,
                     cl::value_desc("PATTERN=N,..."),
                     cl::desc("The pipeline stage of parameters along the axis "
                              "pp of --mesh;\nN+M: tied over two. By default "
                              "by layers, embeddings first")),
      pipelineLayers("pipeline-layers", cl::cat(category),
                     cl::value_desc("N:N:..."),
                     cl::desc("The number of layers of each pipeline stage "
                              "(default: the same,\none more in the first "
                              "ones)")) {}

LogicalResult ImportFlags::checkNone(std::string &message) const {
  const std::pair<StringRef, int> flags[] = {
      {"model", model.getNumOccurrences()},
      {"set", changes.getNumOccurrences()},
      {"no-decay", noDecay.getNumOccurrences()},
      {"frozen", frozen.getNumOccurrences()},
      {"shard", shards.getNumOccurrences()},
      {"experts", experts.getNumOccurrences()},
      {"pipeline-stage", pipelineStages.getNumOccurrences()},
      {"pipeline-layers", pipelineLayers.getNumOccurrences()}};
  for (auto [flag, count] : flags)
    if (count > 0) {
      message =
          ("--" + flag + " is for --import-deepspeed, which is missing").str();
      return failure();
    }
  return success();
}

ImportRequest ImportFlags::getRequest(StringRef tool, StringRef config,
                                      std::optional<MeshAxes> mesh,
                                      StringRef name) const {
  ImportRequest request;
  request.tool = tool;
  request.config = config.str();
  request.model = model;
  request.changes.assign(changes.begin(), changes.end());
  request.noDecay.assign(noDecay.begin(), noDecay.end());
  request.frozen.assign(frozen.begin(), frozen.end());
  request.shards.assign(shards.begin(), shards.end());
  request.experts.assign(experts.begin(), experts.end());
  request.pipelineStages.assign(pipelineStages.begin(), pipelineStages.end());
  request.pipelineLayers = pipelineLayers;
  request.mesh = std::move(mesh);
  request.name = name.str();
  return request;
}

LogicalResult ImportFlags::import(StringRef tool, std::optional<MeshAxes> mesh,
                                  StringRef name, ImportedStep &step,
                                  Errors &errors, StringRef change) const {
  if (model.empty()) {
    errors.add(ExitCode::usage,
               "--model is missing; --help shows what it may be");
    return failure();
  }
  ImportRequest request = getRequest(tool, config, std::move(mesh), name);
  if (!change.empty())
    request.changes.push_back(change.str());
  return importStep(request, step, errors);
}
