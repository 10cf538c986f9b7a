# The supervisor: a small static program of its own, and an object that carries it inside the arcus binary.
# $(BUILD)/arcus-task       the program (never with sanitizers: they do not go with -static)
# $(BUILD)/obj/task_blob.o  symbols arcus_task_start, arcus_task_end: link it into $(BUILD)/arcus and $(BUILD)/test-agent
TASK_SRC := $(wildcard src/task/*.c) src/agent/task_plan.c src/agent/runtime_words.c src/agent/task_proto.c src/agent/log_format.c src/agent/cgroup.c src/agent/rtnl.c src/model/ipv4.c \
            src/agent/scratch_file.c src/agent/authorized_keys.c src/agent/tree.c src/agent/tree_receive.c src/model/job_state.c src/wire/tar.c src/wire/json.c src/wire/json_out.c \
            src/wire/bind.c src/wire/bind_value.c src/wire/bind_write.c $(filter-out src/base/log.c,$(wildcard src/base/*.c))
TASK_CFLAGS := -std=gnu17 -Os -g0 -Isrc -D_GNU_SOURCE $(WARN) -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables $(if $(FAULTS),-DFAULTS)
TASK_OBJ := $(TASK_SRC:%.c=$(BUILD)/task/%.o)

$(BUILD)/task/%.o: %.c
	@mkdir -p $(@D)
	@echo "  cc    $< (task)"
	$Q$(CC) $(TASK_CFLAGS) $(DEPS) -c $< -o $@

$(BUILD)/arcus-task: $(TASK_OBJ)
	@echo "  link  $@"
	$Q$(CC) -static -Wl,--gc-sections -s $^ -o $@

$(BUILD)/obj/task_blob.o: $(BUILD)/arcus-task
	@mkdir -p $(@D)
	$Qprintf '.section .rodata\n.balign 16\n.global arcus_task_start, arcus_task_end\narcus_task_start: .incbin "%s"\narcus_task_end: .byte 0\n.section .note.GNU-stack,"",%%progbits\n' $(BUILD)/arcus-task | $(CC) -x assembler -c - -o $@

-include $(TASK_OBJ:.o=.d)
