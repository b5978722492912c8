"""Reads what a collector got by the official definitions of OTLP, and says what is in it.

The JSON of OTLP is that of protobuf but for ids, which are hexadecimal digits; they are turned into what protobuf reads. Unknown members, and numbers
that should be text, are errors.
"""

import base64
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}
LONG = {"startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "intValue", "asInt", "count"}


def with_ids(value):
    """Turns ids into base64, and checks what protobuf is lenient about."""
    if isinstance(value, list):
        return [with_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    read = {}
    for name, item in value.items():
        if name in IDS:
            raw = bytes.fromhex(item)
            assert len(raw) == IDS[name] and any(raw) and item == item.lower(), (name, item)
            item = base64.b64encode(raw).decode()
        assert name not in LONG or isinstance(item, str), (name, item)
        assert name not in ("kind", "code", "aggregationTemporality") or isinstance(item, int), (name, item)
        read[name] = with_ids(item)
    return read


spans, metrics, services = [], set(), set()
for path, body in json.load(sys.stdin):
    if path == "/v1/traces":
        request = json_format.ParseDict(with_ids(body), ExportTraceServiceRequest())
        for resource in request.resource_spans:
            services.update(it.value.string_value for it in resource.resource.attributes if it.key == "service.name")
            for scope in resource.scope_spans:
                assert scope.scope.name == "backout"
                for span in scope.spans:
                    assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano, span
                    assert span.name and span.kind in (1, 2), span
                    spans.append(span.name)
    elif path == "/v1/metrics":
        request = json_format.ParseDict(with_ids(body), ExportMetricsServiceRequest())
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    data = metric.WhichOneof("data")
                    assert data in ("sum", "gauge", "histogram"), metric
                    for point in getattr(metric, data).data_points:
                        assert point.time_unix_nano > 0, metric
                        if data == "histogram":
                            assert len(point.bucket_counts) == len(point.explicit_bounds) + 1, metric
                            assert sum(point.bucket_counts) == point.count, metric
                    metrics.add(metric.name)
    else:
        raise AssertionError(path)
print(json.dumps({"spans": spans, "metrics": sorted(metrics), "services": sorted(services)}))
