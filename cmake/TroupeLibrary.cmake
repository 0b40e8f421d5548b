# One folder, one static library.
#
#   troupe_library(actors NEEDS config plans net THIRD_PARTY CAF::core CAF::io)
#
# compiles actors/**.cpp (and .cu when CUDA is on) into troupe::actors. A header
# is included by its path from the root: #include "net/base/rows.hpp". NEEDS names
# the lower libraries, THIRD_PARTY any other target; both reach whoever links the
# library. FOLDERS makes a library of these folders alone, which the library of the
# folder above them then has not.

include(CheckCXXCompilerFlag)

# troupe::flags: standard, warnings and sanitizers for every target of ours.
add_library(troupe_flags INTERFACE)
add_library(troupe::flags ALIAS troupe_flags)
target_compile_features(troupe_flags INTERFACE cxx_std_20)
target_include_directories(troupe_flags INTERFACE "${PROJECT_SOURCE_DIR}")
# CMake 3.25 does not know how to ask nvcc 13 for C++20.
target_compile_options(troupe_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
# Aggregates leave out members on purpose: what is not named has its default.
target_compile_options(troupe_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra> $<$<COMPILE_LANGUAGE:CXX>:-Wshadow>
  $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)

set(TROUPE_SANITIZE "" CACHE STRING "Comma-separated: address,undefined or thread")
if(TROUPE_SANITIZE)
  target_compile_options(troupe_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${TROUPE_SANITIZE}> -fno-omit-frame-pointer)
  target_link_options(troupe_flags INTERFACE -fsanitize=${TROUPE_SANITIZE})
  # vptr would pull type information of torch's classes into our objects, where
  # the linker prefers it to the library's; null trips over CAF 0.17's headers.
  if(TROUPE_SANITIZE MATCHES "undefined")
    target_compile_options(troupe_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=vptr,null>)
  endif()
endif()

# ccache and mold where they are, silently without them where they are not.
find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The liberties ccache needs to cache a precompiled header's users and to take
  # what another checkout of the same sources compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${TROUPE_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${TROUPE_CCACHE})
endif()
find_program(TROUPE_MOLD mold)
if(TROUPE_MOLD)
  check_cxx_compiler_flag(-fuse-ld=mold TROUPE_CXX_TAKES_MOLD)
  if(TROUPE_CXX_TAKES_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

# troupe_precompile(words THIRD_PARTY ... OPTIONS ...)
#
# reads cmake/precompiled/words.hpp once for every target of
# troupe_precompiled(<target> words). GCC takes what was read with the same
# macros and code generation: a target links the same libraries at least.
function(troupe_precompile name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "THIRD_PARTY;OPTIONS")
  set(source "${PROJECT_BINARY_DIR}/batches/precompiled_${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "// what is wanted is the header\n" @ONLY)
  add_library(precompiled_${name} OBJECT "${source}")
  target_link_libraries(precompiled_${name} PRIVATE troupe::flags ${arg_THIRD_PARTY})
  target_compile_options(precompiled_${name} PRIVATE ${arg_OPTIONS} -fpch-preprocess)
  # not by its absolute path, so that checkouts share it in ccache
  target_precompile_headers(precompiled_${name} PRIVATE <cmake/precompiled/${name}.hpp>)
endfunction()

function(troupe_precompiled target name)
  target_precompile_headers(${target} REUSE_FROM precompiled_${name})
  # -fPIC also for programs: GCC does not take it for the header's -fPIC otherwise.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>
    $<$<COMPILE_LANGUAGE:CXX>:-fPIC>)
endfunction()

set(TROUPE_BATCH 1 CACHE STRING "Sources compiled as one, on average")

# The sources of a target as files that include about TROUPE_BATCH of them each:
# what they read and what templates they share is most of what a source costs.
# CMake's own unity files name their sources by absolute paths, so no checkout
# finds another's objects in ccache. A source's own path says whether it ends its
# batch, so one that is added or removed changes its batch and not all after it.
# Sources with the property TROUPE_APART are a batch of their own, which a program
# can replace as a whole (tests/gpu/CMakeLists.txt).
function(troupe_batches out name) # <sources>...
  if(TROUPE_BATCH LESS 2)
    set(${out} "${ARGN}" PARENT_SCOPE)
    return()
  endif()
  math(EXPR least "${TROUPE_BATCH} / 2")
  math(EXPR most "${TROUPE_BATCH} * 3 / 2")
  set(files)
  set(batch)
  set(apart)
  set(texts)
  foreach(source IN LISTS ARGN)
    get_source_file_property(definitions "${source}" COMPILE_DEFINITIONS)
    get_source_file_property(alone "${source}" SKIP_UNITY_BUILD_INCLUSION)
    if(definitions OR alone OR source MATCHES "\\.cu$")
      list(APPEND files "${source}")
      continue()
    endif()
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${source}")
    get_source_file_property(is_apart "${source}" TROUPE_APART)
    if(is_apart)
      string(APPEND apart "#include \"${path}\"\n")
      continue()
    endif()
    string(APPEND batch "#include \"${path}\"\n")
    string(REGEX MATCHALL "\n" lines "${batch}")
    list(LENGTH lines length)
    string(MD5 hash "${path}")
    if(length GREATER_EQUAL most OR (length GREATER_EQUAL least AND hash MATCHES "^[0-4]"))
      list(APPEND texts "${batch}")
      set(batch)
    endif()
  endforeach()
  foreach(text IN LISTS texts batch apart)
    # named by its first source, so that the next batches keep their names
    string(REGEX MATCH "[^\"]+\\.cpp" first "${text}")
    string(MAKE_C_IDENTIFIER "${first}" first)
    set(file "${PROJECT_BINARY_DIR}/batches/${name}/${first}.cpp")
    file(CONFIGURE OUTPUT "${file}" CONTENT "${text}" @ONLY)
    list(APPEND files "${file}")
  endforeach()
  set(${out} "${files}" PARENT_SCOPE)
endfunction()

function(troupe_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FOLDERS;NEEDS;THIRD_PARTY")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "troupe_library(${name}): unknown argument ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(folders ${arg_FOLDERS})
  if(NOT folders)
    set(folders ${name})
  endif()
  set(patterns)
  foreach(folder IN LISTS folders)
    list(APPEND patterns "${PROJECT_SOURCE_DIR}/${folder}/*.cpp")
    if(TorchWheel_NVCC)
      list(APPEND patterns "${PROJECT_SOURCE_DIR}/${folder}/*.cu")
    endif()
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  get_property(taken GLOBAL PROPERTY troupe_sources_taken)
  list(REMOVE_ITEM sources ${taken})
  set_property(GLOBAL APPEND PROPERTY troupe_sources_taken ${sources})
  troupe_batches(sources ${name} ${sources})
  add_library(troupe_${name} STATIC ${sources})
  add_library(troupe::${name} ALIAS troupe_${name})
  list(TRANSFORM arg_NEEDS PREPEND troupe::)
  target_link_libraries(troupe_${name} PUBLIC troupe::flags ${arg_NEEDS} ${arg_THIRD_PARTY})
endfunction()

# Puts the text of a file into a library, as what a function of a header returns:
# troupe_embed_text(troupe_models models/x/script.py models/x/script.hpp troupe::models script)
function(troupe_embed_text target file header namespace name)
  set(made "${PROJECT_BINARY_DIR}/${name}.cpp")
  set(script "${PROJECT_SOURCE_DIR}/cmake/embedded_text.cmake")
  add_custom_command(OUTPUT "${made}"
    COMMAND ${CMAKE_COMMAND} "-DIN=${PROJECT_SOURCE_DIR}/${file}" "-DOUT=${made}"
      -DHEADER=${header} -DNAMESPACE=${namespace} -DNAME=${name} -P "${script}"
    DEPENDS "${PROJECT_SOURCE_DIR}/${file}" "${script}" VERBATIM)
  target_sources(${target} PRIVATE "${made}")
  set_source_files_properties("${made}" PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endfunction()
