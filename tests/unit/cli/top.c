/* top.c - what GPUs do, and a node with its devices. */
#include "cli_test.h"

#define SIMULATED                                                                                                                                       \
    "{\"id\":\"GPU-s\",\"name\":\"n1/0\",\"state\":\"free\",\"node\":\"n1\",\"index\":0,\"model\":\"NVIDIA H200\",\"simulated\":true,\"health\":\"\",\"at\":null,"    \
    "\"utilization\":-1,\"memory_mib\":143771,\"memory_used_mib\":-1,\"power_mw\":-1,\"power_cap_mw\":0,\"temperature_c\":-1,\"clock_mhz\":-1,\"throttle\":\"\",\"tasks\":[]}"
#define BROKEN                                                                                                                                                       \
    "{\"id\":\"GPU-b\",\"name\":\"n2/1\",\"state\":\"unhealthy\",\"node\":\"n2\",\"index\":1,\"model\":\"NVIDIA H200\",\"simulated\":false,\"health\":\"it has \\u001bfallen\",\"at\":null," \
    "\"utilization\":-1,\"memory_mib\":143771,\"memory_used_mib\":-1,\"power_mw\":-1,\"power_cap_mw\":700000,\"temperature_c\":-1,\"clock_mhz\":-1,\"throttle\":\"\",\"tasks\":[]}"
#define BUSY                                                                                                                                                           \
    "{\"id\":\"GPU-a\",\"name\":\"n2/0\",\"state\":\"in use\",\"node\":\"n2\",\"index\":0,\"model\":\"NVIDIA H200\",\"simulated\":false,\"health\":\"\",\"at\":\"2999-01-01T00:00:00Z\"," \
    "\"utilization\":98,\"memory_mib\":143771,\"memory_used_mib\":71680,\"power_mw\":699500,\"power_cap_mw\":700000,\"temperature_c\":71,\"clock_mhz\":1980,\"throttle\":\"power cap\","     \
    "\"ecc_corrected\":2,\"ecc_uncorrected\":0,\"energy_mj\":5000000,"                                                                                                      \
    "\"tasks\":[{\"job\":\"job-1\",\"name\":\"train\",\"project\":\"vision\",\"gpus\":0.5,\"wall\":\"process\",\"memory_mib\":71885,\"memory_used_mib\":1536,\"processes\":1}]}"

static const struct answer answers[] = {
    { "GET", "/v1/gpus/live?node=n2", 0, 200, "{\"items\":[" BUSY "],\"next\":null}" },
    { "GET", "/v1/gpus/live?node=no", 0, 404, "{\"type\":\"/problems/not_found\",\"detail\":\"there is no node 'no'\"}" },
    { "GET", "/v1/gpus/live", 0, 200, "{\"items\":[" SIMULATED "," BUSY "," BROKEN "],\"next\":null}" },
    { "GET", "/v1/nodes/n2", 0, 200,
      "{\"id\":\"nod-2\",\"name\":\"n2\",\"state\":\"ready\",\"info\":{\"hostname\":\"h\",\"cpu_milli\":1000,\"gpus\":[{\"index\":0,\"uuid\":\"GPU-a\",\"model\":\"NVIDIA H200\",\"mem_mib\":143771,"
      "\"simulated\":false,\"healthy\":true,\"pci\":\"0000:18:00.0\",\"numa\":0,\"power_cap_mw\":700000,\"peers\":[{\"index\":1,\"path\":\"nvlink\",\"links\":18}]},"
      "{\"index\":1,\"uuid\":\"GPU-b\",\"model\":\"NVIDIA H200\",\"mem_mib\":143771,\"simulated\":false,\"healthy\":false,\"health\":\"it has fallen\",\"numa\":1,"
      "\"peers\":[{\"index\":0,\"path\":\"system\"}]}],\"numas\":[{\"node\":0,\"cpus\":\"0-47\",\"mem_mib\":1024}],"
      "\"nics\":[{\"name\":\"mlx5_0:1\",\"kind\":\"infiniband\",\"state\":\"up\",\"mbps\":400000,\"numa\":0,\"near\":{\"0\":\"switch\",\"1\":\"system\"}}]}}" },
};

TEST(top_shows_every_gpu_with_its_tasks_and_marks_what_is_made_up)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct json *doc;
    struct err err;
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "top", "-n", "1") == 0);
    CHECK(strstr(s.out.at, "3 GPUs, 1 in use, 1 unhealthy, 1 simulated, 699 W"));
    CHECK(strstr(s.out.at, "n1               0 NVIDIA H200 (simulated)  free      [          ]   -        -/  140 GB    - W"));
    CHECK(strstr(s.out.at, "n2               0 NVIDIA H200              in use    [||||||||||]  98%    70.0/  140 GB  700/700 W  71C  1980MHz\n                    slowed down by: power cap\n"));
    CHECK(strstr(s.out.at, "train                    vision              1.5/   70 GB  1 process, 0.5 GPU, wall: process"));
    CHECK(strstr(s.out.at, "\n                    it has ?fallen\n") && !strchr(s.out.at, '\033'));
    CHECK(PLAY(&s, "top", "-o", "json") == 0 && json_parse(SLICE(s.out.at), s.c->mem, &doc, &err));
    CHECK(json_get(json_get(doc, "items")->first->next, "tasks")->first != NULL);
    CHECK(PLAY(&s, "top", "-n", "2", "--node", "n2") == 0 && strstr(s.out.at, "1 GPU, 1 in use") && strstr(strstr(s.out.at, "arcus top") + 1, "arcus top"));
    CHECK(PLAY(&s, "top", "--node", "no") == 4 && PLAY(&s, "top", "--every", "0s") == 2);
}

TEST(a_node_is_described_with_its_devices)
{
    AUTO(stage_down) struct stage s = stage_up();
    struct json *doc;
    struct err err;
    straw_answers(&s, answers, COUNT(answers));
    CHECK(PLAY(&s, "describe", "node", "n2") == 0);
    CHECK(strstr(s.out.at, "\ngpus:\nGPU  MODEL") && strstr(s.out.at, "it has fallen") && strstr(s.out.at, "\nwhat they do:\nGPU  STATE"));
    CHECK(strstr(s.out.at, "2 corrected, 0 not") && strstr(s.out.at, "\nnuma nodes:\n") && strstr(s.out.at, "0-47") && strstr(s.out.at, "700 W"));
    CHECK(strstr(s.out.at, "GPU 0             self          nvlink x18") && strstr(s.out.at, "mlx5_0:1          switch        system") && strstr(s.out.at, "400"));
    CHECK(PLAY(&s, "describe", "node", "n2", "-o", "json") == 0 && json_parse(SLICE(s.out.at), s.c->mem, &doc, &err));
    CHECK(json_get(doc, "live") && json_get(json_get(doc, "info"), "gpus"));
}
