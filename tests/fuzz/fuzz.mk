# fuzz.mk - included by the Makefile. Every target in tests/fuzz/NAME.c has a corpus in tests/fuzz/corpus/NAME/.
#   make fuzz-replay            build/fuzz-NAME: the corpus and damaged copies of it, TAP, with whatever sanitizers this build has
#   make fuzz-run               libFuzzer (clang) on every target, FUZZ_SECONDS each; finds go to BUILD/fuzz/NAME/
#   make fuzz-run FUZZ=json     only one
FUZZ         := json yaml bind job order report manifest log request response tar backup text trace cdi key
FUZZ_SECONDS ?= 60
FUZZ_LAYERS  := sim sched model wire base
FUZZ_LIBS    := $(LDLIBS) -ljansson
FUZZ_BINS    := $(FUZZ:%=$(BUILD)/fuzz-%)
FUZZ_CFLAGS  := $(filter-out -fsanitize=% -O% -Wno-format-truncation -Wno-maybe-uninitialized,$(CFLAGS)) -O1 -DFUZZ -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZ_BESIDE  := tests/unit/wire/sample.c src/agent/image_manifest.c src/agent/log_format.c src/agent/cdi.c
FUZZ_OBJ     := $(patsubst %.c,$(BUILD)/fuzz-obj/%.o,$(wildcard $(FUZZ_LAYERS:%=src/%/*.c)) $(FUZZ_BESIDE))

$(FUZZ_BINS): $(BUILD)/fuzz-%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/obj/tests/fuzz/replay.o $(FUZZ_BESIDE:%.c=$(BUILD)/obj/%.o) $(FUZZ_LAYERS:%=$(BUILD)/lib%.a)
	@echo "  link  $@"
	$Q$(CC) $(CFLAGS) $^ $(FUZZ_LIBS) -o $@

fuzz-bin: $(FUZZ_BINS)
fuzz-names:
	@echo $(FUZZ)
fuzz-replay: fuzz-bin
	$Qprove -Q $(FUZZ_BINS)

$(BUILD)/fuzz-obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  clang $<"
	$Qclang $(FUZZ_CFLAGS) -MMD -MP -c $< -o $@
$(BUILD)/libfuzzer-%: $(BUILD)/fuzz-obj/tests/fuzz/%.o $(FUZZ_OBJ)
	@echo "  link  $@"
	$Qclang -fsanitize=fuzzer,address,undefined $^ $(FUZZ_LIBS) -o $@

fuzz-run: $(FUZZ:%=fuzz-run-%)
$(FUZZ:%=fuzz-run-%): fuzz-run-%: $(BUILD)/libfuzzer-%
	@mkdir -p $(BUILD)/fuzz/$*
	$< -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -max_len=16384 -print_final_stats=1 -verbosity=0 -artifact_prefix=$(BUILD)/fuzz/$*- $(BUILD)/fuzz/$* tests/fuzz/corpus/$*

.PHONY: fuzz-bin fuzz-names fuzz-replay fuzz-run $(FUZZ:%=fuzz-run-%)
