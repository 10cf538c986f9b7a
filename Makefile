# One file, no recursion. USES is the law: a layer may use only what its row names (and base, which all may). The unit tests
# of a layer link nothing else, so a forbidden call does not link.
#   make            the program, build/arcus           make test-bin     every test binary, with ASan, UBSan and fault points
#   SAN=...         sanitizers of this build           BUILD=dir         where it goes         V=1  show commands
LAYERS := base os wire net model meter sched sim store auth control api agent cli server
USES_base    :=
USES_os      := base
USES_wire    := base
USES_net     := wire os base
USES_model   := wire base
USES_meter   := model wire base
USES_sched   := model wire base
USES_sim     := sched model wire base
USES_store   := model os wire base
USES_auth    := store model os wire base
USES_control := auth store sched meter model os wire base
USES_api     := control auth store sched meter model net os wire base
USES_agent   := model net os wire base
USES_cli     := model net os wire base
USES_server  := api control auth store sched meter model net os wire base

Q      := $(if $(V),,@)
BUILD  ?= build
CC     ?= gcc
OPT    ?= -O2
PKGS   := sqlite3 libpq openssl libsodium yaml-0.1
WARN   := -Wall -Wextra -Werror -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wno-missing-field-initializers
# gcc cannot follow 'outputs are untouched on failure' and guesses wrong at -O2; clang does not know the flags
WARN   += $(if $(findstring clang,$(shell $(CC) --version)),,-Wno-format-truncation -Wno-maybe-uninitialized)
CFLAGS := -std=gnu17 $(OPT) -g -pthread -Isrc -Itests -D_GNU_SOURCE $(WARN) -fno-omit-frame-pointer $(if $(FAULTS),-DFAULTS) $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all) $(shell pkg-config --cflags $(PKGS)) $(EXTRA_CFLAGS)
# libpq is loaded when it is needed (store/libpq.h); the store's tests call it themselves
LDLIBS := $(shell pkg-config --libs $(filter-out libpq,$(PKGS))) -lwslay -lhttp_parser -lm -ldl -pthread

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard $(1)))
ALL_OBJ := $(call obj,$(LAYERS:%=src/%/*.c) src/main.c)

all: $(BUILD)/arcus

# Named both ways: a folder that was built as build/test and as /path/build/test follows its headers either way.
DEPS = -MMD -MP -MT $(abspath $@) -MT $(patsubst $(CURDIR)/%,%,$(abspath $@))
$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  cc    $<"
	$Q$(CC) $(CFLAGS) $(DEPS) -c $< -o $@

include src/task/task.mk
ALL_OBJ += $(BUILD)/obj/task_blob.o

$(BUILD)/arcus: $(ALL_OBJ)
	@echo "  link  $@"
	$Q$(CC) $(CFLAGS) $^ $(LDLIBS) -o $@

# group: a layer's archive, and its test binary that links the layer whole and what it may use. test-sim is the whole cloud, below.
test_of = $(BUILD)/test-$(if $(filter sim,$(1)),trace,$(1))
define layer
$(BUILD)/lib$(1).a: $(call obj,src/$(1)/*.c) ; @rm -f $$@; ar rcs $$@ $$^
$(call test_of,$(1)): $(call obj,tests/unit/$(1)/*.c tests/tap.c) $(if $(filter agent,$(1)),$(BUILD)/obj/task_blob.o) $(foreach l,$(1) $(USES_$(1)),$(BUILD)/lib$(l).a)
	@echo "  link  $$@"
	$Q$(CC) $(CFLAGS) $$(filter %.o,$$^) -Wl,--whole-archive $(BUILD)/lib$(1).a -Wl,--no-whole-archive $(foreach l,$(USES_$(1)),$(BUILD)/lib$(l).a) $(LDLIBS) $(if $(filter store,$(1)),-lpq) -o $$@
endef
$(foreach l,$(LAYERS),$(if $(wildcard src/$(l)/*.c),$(eval $(call layer,$(l)))))

TEST_BINS := $(foreach l,$(LAYERS),$(if $(wildcard tests/unit/$(l)/*.c),$(call test_of,$(l))))
test-bin: $(TEST_BINS)

include tests/fuzz/fuzz.mk

# The whole cloud in one process with one seed: server and agents together, so it links everything but the CLI.
$(BUILD)/test-sim: $(call obj,tests/sim/*.c tests/tap.c) $(patsubst %,$(BUILD)/lib%.a,$(filter-out cli,$(LAYERS))) $(BUILD)/obj/task_blob.o
	@echo "  link  $@"
	$Q$(CC) $(CFLAGS) $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDLIBS) -o $@
$(if $(wildcard tests/sim/*.c),$(eval test-bin: $(BUILD)/test-sim))

# Clients of several servers, and the check of what they were told (flow 36).
$(BUILD)/heads: $(call obj,tests/heads/*.c) $(patsubst %,$(BUILD)/lib%.a,net os wire base)
	@echo "  link  $@"
	$Q$(CC) $(CFLAGS) $^ $(LDLIBS) -o $@
# A later version, as far as a rolling upgrade can tell: this one, with what tests/next/ adds to it.
NEXT_WRAPS := migrate bind_write http_pass control_open
$(BUILD)/arcus-next: $(call obj,tests/next/*.c) $(ALL_OBJ)
	@echo "  link  $@"
	$Q$(CC) $(CFLAGS) $^ $(NEXT_WRAPS:%=-Wl,--wrap=%) $(LDLIBS) -o $@
# What flow 32 runs: a load and a killer of processes. It talks to the cloud over sockets, so it links only what reads JSON.
$(BUILD)/kills: $(call obj,tests/kills/*.c) $(BUILD)/libwire.a $(BUILD)/libbase.a
	@echo "  link  $@"
	$Q$(CC) $(CFLAGS) $^ $(LDLIBS) -o $@
test-bin: $(BUILD)/kills $(BUILD)/heads $(BUILD)/arcus-next
# Libraries of drivers that no machine without GPUs has, made up for tests: loaded by name, so they link nothing of ours.
FAKES := $(BUILD)/fake/libnvidia-ml.so.1 $(BUILD)/fake/libcuda.so.1 $(BUILD)/fake/libcuda-work.so.1 $(BUILD)/fake/libcuda-both.so.1 $(BUILD)/fake/nvidia-cuda-mps-control
$(BUILD)/fake/nvidia-cuda-mps-control: tests/fake/mps.c
	@mkdir -p $(@D)
	@echo "  link  $@"
	$Q$(CC) -std=gnu17 -O1 -g -D_GNU_SOURCE $(WARN) $< -o $@
$(BUILD)/fake/libnvidia-ml.so.1: tests/fake/nvml.c src/agent/nvml.h
$(BUILD)/fake/libcuda.so.1: tests/fake/cuda.c src/agent/cuda.h
$(BUILD)/fake/libcuda-work.so.1: tests/fake/cuda_work.c src/agent/cuda_work.h
$(BUILD)/fake/libcuda-both.so.1: tests/fake/cuda.c tests/fake/cuda_work.c src/agent/cuda.h src/agent/cuda_work.h
$(filter %.so.1,$(FAKES)): tests/fake/conf.h
	@mkdir -p $(@D)
	@echo "  link  $@"
	$Q$(CC) -std=gnu17 -O1 -g -Isrc -D_GNU_SOURCE $(WARN) -shared -fPIC -pthread $(filter %.c,$^) -ldl -o $@
test-bin: $(FAKES)

BENCH_BINS := $(patsubst tests/bench/%.c,$(BUILD)/bench-%,$(wildcard tests/bench/*.c))
$(BENCH_BINS): $(BUILD)/bench-%: $(BUILD)/obj/tests/bench/%.o $(LAYERS:%=$(BUILD)/lib%.a) $(BUILD)/obj/task_blob.o
	@echo "  link  $@"
	$Q$(CC) $(CFLAGS) $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDLIBS) -o $@
bench-bin: $(BENCH_BINS)

clean: ; rm -rf $(BUILD)
.PHONY: all test-bin bench-bin clean
.SECONDARY:
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
