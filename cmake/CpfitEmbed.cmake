# cpfit_embed(<target> <out.cpp> <files...>): compiles data files into <target> as cpfit::embedded_files()
# (model/presets/embedded.h), so that the program needs no folder beside it and a run can hash exactly what it used.
set(CPFIT_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/embed_files.cmake")
function(cpfit_embed target out)
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/${out}")
  set(inputs "")
  foreach(file IN LISTS ARGN)
    list(APPEND inputs "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endforeach()
  list(JOIN inputs "|" joined)
  add_custom_command(OUTPUT "${generated}"
    COMMAND ${CMAKE_COMMAND} "-DOUT=${generated}" "-DFILES=${joined}" "-DROOT=${CMAKE_CURRENT_SOURCE_DIR}" -P "${CPFIT_EMBED_SCRIPT}"
    DEPENDS ${inputs} "${CPFIT_EMBED_SCRIPT}" VERBATIM)
  target_sources(${target} PRIVATE "${generated}")
endfunction()
