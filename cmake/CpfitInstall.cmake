# `cmake --install` and CPack. Four components, each a Debian package:
#   cli          cpfit                programs without a display or GPU: cpfit, its manual, completion, examples, documents
#   gui          cpfit-gui            the desktop program
#   bench        cpfit-bench          what measures; it alone depends on MPI, CUDA and NCCL
#   development  libcpfit-dev         headers and static libraries of model and sim, for find_package(cpfit)

# The manual and the completion are printed by the program that was built.
set(pages "${PROJECT_BINARY_DIR}/package")
set(made "")
function(cpfit_printed file)
  add_custom_command(OUTPUT "${pages}/${file}" DEPENDS cpfit ${PRINTED_DEPENDS}
    COMMAND ${CMAKE_COMMAND} -E make_directory "${pages}" COMMAND ${ARGN} > "${pages}/${file}" VERBATIM)
  set(made ${made} "${pages}/${file}" PARENT_SCOPE)
endfunction()
cpfit_printed(cpfit.1 $<TARGET_FILE:cpfit> manual)
foreach(shell bash zsh fish)
  cpfit_printed(completion.${shell} $<TARGET_FILE:cpfit> completion ${shell})
endforeach()
set(sisters cpfit-bench)
if(TARGET cpfit-gui)
  list(APPEND sisters cpfit-gui)
endif()
foreach(sister IN LISTS sisters)
  set(PRINTED_DEPENDS ${sister})
  cpfit_printed(${sister}.help $<TARGET_FILE:${sister}> --help)
  set(PRINTED_DEPENDS "${pages}/${sister}.help")
  cpfit_printed(${sister}.1 $<TARGET_FILE:cpfit> manual --program ${sister} --help-text "${pages}/${sister}.help")
endforeach()
add_custom_target(cpfit_pages ALL DEPENDS ${made})

function(cpfit_install_page component page)
  install(FILES "${pages}/${page}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT ${component})
endfunction()
function(cpfit_install_copyright component package)
  install(FILES "${PROJECT_SOURCE_DIR}/cmake/package/copyright" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${package}" COMPONENT ${component})
endfunction()

# cpfit
install(TARGETS cpfit RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT cli)
cpfit_install_page(cli cpfit.1)
cpfit_install_copyright(cli cpfit)
install(FILES "${pages}/completion.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME cpfit COMPONENT cli)
install(FILES "${pages}/completion.zsh" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions" RENAME _cpfit COMPONENT cli)
install(FILES "${pages}/completion.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" RENAME cpfit.fish COMPONENT cli)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${CMAKE_INSTALL_DATADIR}/cpfit" COMPONENT cli)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/cpfit" COMPONENT cli FILES_MATCHING PATTERN "*.md")

# cpfit-bench
install(TARGETS cpfit-bench RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT bench)
cpfit_install_page(bench cpfit-bench.1)
cpfit_install_copyright(bench cpfit-bench)

# cpfit-gui
if(TARGET cpfit-gui)
  install(TARGETS cpfit-gui RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT gui)
  cpfit_install_page(gui cpfit-gui.1)
  cpfit_install_copyright(gui cpfit-gui)
  install(FILES "${PROJECT_SOURCE_DIR}/cmake/package/cpfit-gui.desktop" DESTINATION "${CMAKE_INSTALL_DATADIR}/applications" COMPONENT gui)
  install(FILES "${PROJECT_SOURCE_DIR}/cmake/package/cpfit.svg"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps" RENAME cpfit-gui.svg COMPONENT gui)
endif()

# libcpfit-dev: the parts of model and sim as cpfit::model_recipe and so on, all of a floor as cpfit::model and cpfit::sim.
get_property(parts GLOBAL PROPERTY CPFIT_EXPORTED_PARTS)
foreach(floor model sim)
  add_library(cpfit_${floor} INTERFACE)
  add_library(cpfit::${floor} ALIAS cpfit_${floor})
  set_target_properties(cpfit_${floor} PROPERTIES EXPORT_NAME ${floor})
  foreach(part IN LISTS parts)
    if(part MATCHES "^cpfit_${floor}_")
      target_link_libraries(cpfit_${floor} INTERFACE ${part})
    endif()
  endforeach()
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${floor}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/cpfit" COMPONENT development
    FILES_MATCHING PATTERN "*.h")
endforeach()
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/cpfit")
install(TARGETS ${parts} cpfit_model cpfit_sim EXPORT cpfit ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}/cpfit" COMPONENT development)
install(EXPORT cpfit NAMESPACE cpfit:: DESTINATION "${package_folder}" FILE cpfitTargets.cmake COMPONENT development)
include(CMakePackageConfigHelpers)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/package/cpfitConfig.cmake.in" "${PROJECT_BINARY_DIR}/package/cpfitConfig.cmake"
  INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/cpfitConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/package/cpfitConfig.cmake" "${PROJECT_BINARY_DIR}/package/cpfitConfigVersion.cmake"
  DESTINATION "${package_folder}" COMPONENT development)
cpfit_install_copyright(development libcpfit-dev)

# Debian packages: `cpack -G DEB` in the build folder.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cpfit)
set(CPACK_PACKAGE_CONTACT "The cpfit developers <cpfit@localhost>")
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL cli bench development)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_CLI_PACKAGE_NAME cpfit)
set(CPACK_DEBIAN_CLI_PACKAGE_RECOMMENDS cpfit-gui)
set(CPACK_DEBIAN_CLI_PACKAGE_SUGGESTS "cpfit-bench, bash-completion")
set(CPACK_COMPONENT_CLI_DESCRIPTION "finds the smallest context-parallel recipe that fits and hides its ring
 cpfit plans CP x TP x PP x DP recipes for long-context training: memory by component, hidden and exposed
 communication on the real topology, and why every neighbouring recipe was rejected. No GPU is needed.")
set(CPACK_DEBIAN_BENCH_PACKAGE_NAME cpfit-bench)
set(CPACK_COMPONENT_BENCH_DESCRIPTION "measures a cluster for cpfit
 Microbenchmarks of attention, matrix products, messages, collectives and whole ring steps, alone or under mpirun.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libcpfit-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libfmt-dev, libpugixml-dev, libtomlplusplus-dev, libtbb-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "headers and static libraries of cpfit's cost model and simulator
 For programs that predict memory and step time themselves: find_package(cpfit), cpfit::model, cpfit::sim.")
if(TARGET cpfit-gui)
  list(APPEND CPACK_COMPONENTS_ALL gui)
  set(CPACK_DEBIAN_GUI_PACKAGE_NAME cpfit-gui)
  set(CPACK_DEBIAN_GUI_PACKAGE_DEPENDS "fonts-dejavu-core, cpfit (= ${PROJECT_VERSION})")
  set(CPACK_COMPONENT_GUI_DESCRIPTION "explores long-context training recipes in a window
 Recipe, memory, timeline, topology, results and calibrations of cpfit, live while a recipe is edited.")
endif()
include(CPack)
