# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Layers: dialect <- passes <- codegen <- tools; the runtime depends on none of
# them. A target that reaches up stops the configuration.

# The only target that carries MLIR/LLVM headers and libraries. Never name one
# of MLIR's static libraries beside it: two copies of MLIR have two sets of type
# ids.
add_library(zero_mlir INTERFACE)
target_include_directories(zero_mlir SYSTEM INTERFACE
  ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_include_directories(zero_mlir INTERFACE
  ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_options(zero_mlir INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
target_link_libraries(zero_mlir INTERFACE MLIR LLVM)

# Headers that most files read, parsed once for all of them: more than half of the
# time of a build. The dialects are among them: a change of theirs rebuilds nearly
# every file anyway. Files still include what they use:
# check_includes.py knows what is used of these headers, clang-tidy reads files without
# them, and -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/Precompiled.cpp
  CONTENT "// Parses the precompiled headers.\n")
function(zero_precompile name)
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/Precompiled.cpp)
  target_link_libraries(${name} PRIVATE zero_mlir)
  target_compile_options(${name} PRIVATE -Xclang -fno-pch-timestamp)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  add_dependencies(${name} ZeroDialectIncGen ZrtDialectIncGen)
endfunction()
set(ZERO_PRECOMPILED
  <random>
  <thread>
  <llvm/ADT/MapVector.h>
  <llvm/ADT/StringExtras.h>
  <llvm/ADT/TypeSwitch.h>
  <llvm/Support/FileSystem.h>
  <llvm/Support/FormatVariadic.h>
  <llvm/Support/JSON.h>
  <mlir/Dialect/Arith/IR/Arith.h>
  <mlir/Dialect/LLVMIR/LLVMDialect.h>
  <mlir/Dialect/Math/IR/Math.h>
  <mlir/IR/Builders.h>
  <mlir/IR/BuiltinOps.h>
  <mlir/Parser/Parser.h>
  <mlir/Pass/PassManager.h>
  "${PROJECT_SOURCE_DIR}/dialect/zrt/ZrtDialect.h")
zero_precompile(zero_precompiled ${ZERO_PRECOMPILED})

set_property(GLOBAL PROPERTY ZERO_LAYER_ORDER "dialect;passes;codegen;tools")

# zero_library(<name> LAYER <layer> SRCS ... [DEPS ...] [TDGEN ...])
function(zero_library name)
  cmake_parse_arguments(A "" "LAYER" "SRCS;DEPS;TDGEN" ${ARGN})
  add_library(${name} STATIC ${A_SRCS})
  set_target_properties(${name} PROPERTIES ZERO_LAYER ${A_LAYER})
  target_precompile_headers(${name} REUSE_FROM zero_precompiled)
  target_link_libraries(${name} PUBLIC zero_mlir ${A_DEPS})
  if(A_TDGEN)
    add_dependencies(${name} ${A_TDGEN})
  endif()
  set_property(GLOBAL APPEND PROPERTY ZERO_LIBS ${name})
endfunction()

# zero_tool(<name> SRCS ... DEPS ...)
function(zero_tool name)
  cmake_parse_arguments(A "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${A_SRCS})
  set_target_properties(${name} PROPERTIES ZERO_LAYER tools)
  target_precompile_headers(${name} REUSE_FROM zero_precompiled)
  target_link_libraries(${name} PRIVATE zero_mlir ${A_DEPS})
endfunction()

# Headers of the runtime that others may read: the contract, no code.
add_library(zero_rt_headers INTERFACE)
target_include_directories(zero_rt_headers INTERFACE
  ${PROJECT_SOURCE_DIR}/runtime/include)

function(zero_check_layers)
  get_property(order GLOBAL PROPERTY ZERO_LAYER_ORDER)
  get_property(libs GLOBAL PROPERTY ZERO_LIBS)
  foreach(lib ${libs})
    get_target_property(layer ${lib} ZERO_LAYER)
    get_target_property(deps ${lib} LINK_LIBRARIES)
    list(FIND order ${layer} here)
    foreach(dep ${deps})
      if(NOT TARGET ${dep})
        continue()
      endif()
      get_target_property(dep_layer ${dep} ZERO_LAYER)
      if(NOT dep_layer)
        continue()
      endif()
      list(FIND order ${dep_layer} there)
      if(dep_layer STREQUAL "runtime" OR there GREATER here)
        message(FATAL_ERROR
          "layering: ${lib} (${layer}) must not depend on ${dep} (${dep_layer})")
      endif()
    endforeach()
  endforeach()
  get_target_property(runtime_deps zero_rt LINK_LIBRARIES)
  foreach(dep ${runtime_deps})
    if(dep STREQUAL "zero_mlir" OR dep IN_LIST libs)
      message(FATAL_ERROR "layering: zero_rt must not depend on ${dep}")
    endif()
  endforeach()
endfunction()

# mlir-tblgen reads the directory's include path, which is empty on purpose (the
# runtime must not see MLIR), so the search path is passed here.
macro(zero_tablegen output)
  mlir_tablegen(${output} ${ARGN}
    EXTRA_INCLUDES ${PROJECT_SOURCE_DIR} ${MLIR_INCLUDE_DIRS})
endmacro()

# zero_passes(<Name> <source>...): a component of passes, with Passes.td.
function(zero_passes name)
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  zero_tablegen(Passes.h.inc -gen-pass-decls -name=Zero${name})
  zero_tablegen(Page.md -gen-pass-doc)
  add_public_tablegen_target(ZeroPasses${name}IncGen)
  zero_library(ZeroPasses${name}
    LAYER passes
    SRCS ${ARGN}
    DEPS ZeroDialect ZrtDialect
    TDGEN ZeroPasses${name}IncGen)
endfunction()
