# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# zero_install(): what `cmake --install` copies: the tools, the runtime and the compiler
# as libraries with their headers, the headers for passes in plugins, and the files for
# find_package(ZeroOpt).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# zero_loads_plugins(<tool>): a plugin finds the dialects and passes of this project in
# the tool. A plugin with a copy of its own would have type ids of its own, and would
# recognize no op.
function(zero_loads_plugins tool)
  set_target_properties(${tool} PROPERTIES ENABLE_EXPORTS ON)
  get_property(libs GLOBAL PROPERTY ZERO_LIBS)
  list(JOIN libs "," libs)
  set_target_properties(${tool} PROPERTIES
    LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${libs}")
endfunction()

function(zero_install)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/ZeroOpt)
  # Headers of the compiler have a folder of their own: dialect/ and passes/ are names
  # that another project may have, too.
  set(headers ${CMAKE_INSTALL_INCLUDEDIR}/zero-opt)
  set(tools zero-ckpt zero-compile zero-lsp-server zero-opt zero-prove zero-reduce zero-run
    zero-translate)
  set(libraries zero_compiler zero_rt)
  if(TARGET zero_rt_mpi)
    list(APPEND libraries zero_rt_mpi)
  endif()

  # The folder of the installed files can be moved; that of MLIR stays. A build has the
  # same paths: CMake would fill up a shorter one with empty entries, and an empty entry
  # is the current folder. lib is for the build.
  set_target_properties(${tools} PROPERTIES
    INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};$ORIGIN/../lib")
  set_target_properties(${libraries} PROPERTIES INSTALL_RPATH "$ORIGIN")
  set_target_properties(${tools} ${libraries} PROPERTIES
    INSTALL_RPATH_USE_LINK_PATH ON
    BUILD_WITH_INSTALL_RPATH ON)
  install(TARGETS ${tools} ${libraries} EXPORT ZeroOptTargets
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT ZeroOptTargets NAMESPACE ZeroOpt:: DESTINATION ${package})

  # library.h and what it includes are between the compiler and the runtime.
  set(interface abi.h code.h device.h status.h step.h tcp.h transport.h)
  if(TARGET zero_rt_mpi)
    list(APPEND interface mpi.h)
  endif()
  list(TRANSFORM interface PREPEND ${PROJECT_SOURCE_DIR}/runtime/include/zero_rt/)
  install(FILES ${interface} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/zero_rt)

  install(FILES ${PROJECT_SOURCE_DIR}/tools/compiler/include/zero_compiler.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

  foreach(dialect zero zrt)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/dialect/${dialect}
      ${PROJECT_BINARY_DIR}/dialect/${dialect}
      DESTINATION ${headers}/dialect
      FILES_MATCHING PATTERN "*.h" PATTERN "*.h.inc" PATTERN "*Ops.cpp.inc"
      PATTERN CMakeFiles EXCLUDE)
  endforeach()
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/passes ${PROJECT_BINARY_DIR}/passes
    DESTINATION ${headers}
    FILES_MATCHING PATTERN Passes.h PATTERN Passes.h.inc PATTERN Pipelines.h
    PATTERN Prove.h PATTERN CMakeFiles EXCLUDE)

  set(ZERO_HEADERS_DIR ${headers})
  configure_package_config_file(
    ${PROJECT_SOURCE_DIR}/tools/cmake/ZeroOptConfig.cmake.in
    ${PROJECT_BINARY_DIR}/install/ZeroOptConfig.cmake
    INSTALL_DESTINATION ${package} PATH_VARS ZERO_HEADERS_DIR
    NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  # Before version 1 a minor version may change the interface.
  write_basic_package_version_file(
    ${PROJECT_BINARY_DIR}/install/ZeroOptConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES
    ${PROJECT_BINARY_DIR}/install/ZeroOptConfig.cmake
    ${PROJECT_BINARY_DIR}/install/ZeroOptConfigVersion.cmake
    DESTINATION ${package})
endfunction()
