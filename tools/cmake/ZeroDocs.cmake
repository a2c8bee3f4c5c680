# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# zero_docs() joins the pages that mlir-tblgen makes of op and pass definitions to
# docs/zero.md, docs/zrt.md and docs/passes.md in the build folder.

function(zero_docs_page page)
  set(parts)
  foreach(component ${ARGN})
    list(APPEND parts ${PROJECT_BINARY_DIR}/${component}/Page.md)
  endforeach()
  set(output ${PROJECT_BINARY_DIR}/docs/${page})
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/docs
    COMMAND ${CMAKE_COMMAND} -E cat ${parts} > ${output}
    DEPENDS ${parts})
  set_property(GLOBAL APPEND PROPERTY ZERO_DOCS ${output})
endfunction()

function(zero_docs)
  zero_docs_page(zero.md dialect/zero)
  zero_docs_page(zrt.md dialect/zrt)
  zero_docs_page(passes.md passes/layout passes/collective passes/accumulate
    passes/scalar passes/offload passes/lower passes/schedule passes/stage
    passes/check passes/prove)
  get_property(pages GLOBAL PROPERTY ZERO_DOCS)
  add_custom_target(zero-docs ALL DEPENDS ${pages})
  add_dependencies(zero-docs ZeroDialectIncGen ZrtDialectIncGen)
  foreach(component Layout Collective Accumulate Scalar Offload Lower Schedule
      Stage Check Prove)
    add_dependencies(zero-docs ZeroPasses${component}IncGen)
  endforeach()
endfunction()
