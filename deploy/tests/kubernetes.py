"""Checks what deploy/kubernetes renders: `kubernetes.py EXAMPLE BASE...` takes files with the rendered resources.

The rules that no schema knows are checked of the example, which has every service. Writes the queries of the autoscaler to standard
output as a file of rules, for promtool.
"""

import json
import re
import sys

import facts
import kubernetes_validate
import yaml

# The oldest that knows everything that is used here, and the newest that the schemas have.
VERSIONS = ["1.31", "1.37"]
# The one kind that is not Kubernetes' own: no registry has its schema.
WITHOUT_SCHEMA = {"ScaledObject"}
NAMESPACE = "postrider"
# How long a process may take beyond its grace period (CLOSING in libs/runtime/src/process.rs), in seconds.
CLOSING = 5

problems = []


def expect(holds, what):
    if not holds:
        problems.append(what)


def validate(path, resources):
    for resource in resources:
        if resource["kind"] in WITHOUT_SCHEMA:
            continue
        name = f"{path}: {resource['kind']} {resource['metadata']['name']}"
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(resource, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                problems.append(f"{name}, Kubernetes {version}: {error.message}")
            except kubernetes_validate.SchemaNotFoundError:
                problems.append(f"{name}: Kubernetes {version} has no {resource['kind']} of {resource['apiVersion']}")


def check_namespace(resource):
    if resource["kind"] == "Namespace":
        return
    name = f"{resource['kind']} {resource['metadata']['name']}"
    expect(resource["metadata"].get("namespace") == NAMESPACE, f"{name}: is not in the namespace {NAMESPACE}")


def check_pod(name, spec):
    context = spec.get("securityContext", {})
    container, = spec["containers"]
    own = container.get("securityContext", {})
    expect(spec.get("automountServiceAccountToken") is False, f"{name}: has a token of Kubernetes")
    expect(spec.get("serviceAccountName") == name, f"{name}: has no account of its own")
    expect(spec.get("enableServiceLinks") is False, f"{name}: is told of every Service by variables")
    expect(context.get("runAsNonRoot") is True, f"{name}: may run as root")
    expect(context.get("seccompProfile") == {"type": "RuntimeDefault"}, f"{name}: has no seccomp profile")
    expect(own.get("readOnlyRootFilesystem") is True, f"{name}: may write to its root")
    expect(own.get("allowPrivilegeEscalation") is False, f"{name}: may get privileges")
    expect(own.get("capabilities") == {"drop": ["ALL"]}, f"{name}: has capabilities")
    resources = container.get("resources", {})
    expect({"cpu", "memory"} <= set(resources.get("requests", {})), f"{name}: requests no processor or memory")
    expect("memory" in resources.get("limits", {}), f"{name}: has no bound of memory")
    image = container["image"]
    expect(image.endswith(f":{facts.version()}"), f"{name}: {image} is not of version {facts.version()}")
    check_environment(name, spec, container)


def check_environment(name, spec, container):
    """Variables exist, name files that are mounted, and refer to variables that come before them."""
    mounted = mounted_files(spec, container)
    plain = {variable["name"]: variable.get("value", "") for variable in container["env"] if "valueFrom" not in variable}
    problems.extend(facts.misfits(name, plain, {path for path in mounted if path.startswith("/run/secrets/")}))
    expect(plain["POSTRIDER_CONFIG"] in mounted, f"{name}: its configuration is not mounted")
    before = set()
    for variable in container["env"]:
        value = variable.get("value", "")
        for reference in re.findall(r"\$\((\w+)\)", value):
            expect(reference in before, f"{name}: {variable['name']} refers to {reference}, which does not come before it")
        before.add(variable["name"])


def mounted_files(spec, container):
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    files = set()
    for mount in container["volumeMounts"]:
        volume = volumes[mount["name"]]
        if "secret" in volume:
            names = [item["path"] for item in volume["secret"]["items"]]
        else:
            names = ["postrider.yaml"]
        files |= {f"{mount['mountPath']}/{file}" for file in names}
    return files


def check_deployment(name, spec, resources):
    pod = spec["template"]["spec"]
    container, = pod["containers"]
    expect(container["args"] == ["serve", name], f"{name}: runs {container['args']}")
    for probe, paths in (
        ("startupProbe", ["/readyz"]), ("livenessProbe", ["/healthz"]), ("readinessProbe", ["/healthz", "/readyz"]),
    ):
        request = container.get(probe, {}).get("httpGet", {})
        expect(request.get("path") in paths and request.get("port") == "admin", f"{name}: {probe} asks {request}")
    wait = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["sleep", "0"])
    grace = int(facts.defaults()["shutdown.gracePeriodMillis"]) / 1000
    least = int(wait[1]) + grace + CLOSING
    expect(pod["terminationGracePeriodSeconds"] >= least, f"{name}: is killed before the {least} s that it may take to stop")
    spread = {constraint["topologyKey"] for constraint in pod.get("topologySpreadConstraints", [])}
    expect(spread == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}, f"{name}: is spread over {spread}")
    labels = spec["template"]["metadata"]["labels"]
    budgets = [
        resource for resource in resources
        if resource["kind"] == "PodDisruptionBudget" and resource["spec"]["selector"]["matchLabels"].items() <= labels.items()
    ]
    expect(len(budgets) == 1, f"{name}: has {len(budgets)} disruption budgets")


def check_service(service, deployments):
    name = service["metadata"]["name"]
    chosen = [
        spec for spec in deployments.values()
        if service["spec"]["selector"].items() <= spec["template"]["metadata"]["labels"].items()
    ]
    expect(len(chosen) == 1, f"Service {name}: chooses the pods of {len(chosen)} Deployments")
    for spec in chosen:
        ports = {port["name"]: port["containerPort"] for port in spec["template"]["spec"]["containers"][0]["ports"]}
        for port in service["spec"]["ports"]:
            expect(ports.get(port["targetPort"]) == port["port"], f"Service {name}: no pod listens on {port}")


def check_listeners(name, spec):
    """What a port of the pod says is what the variables have it listen on."""
    container, = spec["template"]["spec"]["containers"]
    listens = {
        int(variable["value"].rpartition(":")[2]) for variable in container["env"] if variable["name"].endswith("LISTEN")
    }
    ports = {port["containerPort"] for port in container["ports"]}
    expect(listens == ports, f"{name}: listens on {sorted(listens)}, and names the ports {sorted(ports)}")


def check_policies(resources):
    policies = [resource["spec"] for resource in resources if resource["kind"] == "NetworkPolicy"]
    deny = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    expect(deny in policies, "no NetworkPolicy refuses whatever the others do not permit")


def check_configuration(path, resources):
    """The files hold keys that there are."""
    known = set(facts.defaults())
    for resource in resources:
        if resource["kind"] != "ConfigMap":
            continue
        for key in keys_of(yaml.safe_load(resource["data"]["postrider.yaml"])):
            expect(key in known, f"{path}: postrider.yaml has the key {key}, which there is not")


def keys_of(tree, prefix=""):
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from keys_of(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def check_scaling(resources, deployments):
    """Prints the queries as rules."""
    rules = []
    for resource in resources:
        if resource["kind"] != "ScaledObject":
            continue
        name = resource["metadata"]["name"]
        target = resource["spec"]["scaleTargetRef"]["name"]
        expect(target in deployments, f"ScaledObject {name}: there is no Deployment {target}")
        expect("replicas" not in deployments.get(target, {}), f"Deployment {target}: says how many replicas, and so does KEDA")
        for trigger in resource["spec"]["triggers"]:
            query = trigger["metadata"]["query"]
            for metric in re.findall(r"\bpostrider_\w+", query):
                expect(metric in facts.metrics(), f"ScaledObject {name}: there is no metric {metric}")
            rules.append({"record": f"scaling:{name.replace('-', '_')}", "expr": query})
    print(json.dumps({"groups": [{"name": "scaling", "rules": rules}]}))


def main():
    rendered = {path: list(yaml.safe_load_all(open(path))) for path in sys.argv[1:]}
    for path, resources in rendered.items():
        validate(path, resources)
        check_configuration(path, resources)
    example = rendered[sys.argv[1]]
    deployments = {resource["metadata"]["name"]: resource["spec"] for resource in example if resource["kind"] == "Deployment"}
    served = [spec["template"]["spec"]["containers"][0]["args"][-1] for spec in deployments.values()]
    expect(sorted(served) == sorted(facts.services()), f"Deployments run {sorted(served)}, services are {sorted(facts.services())}")
    for resource in example:
        check_namespace(resource)
        if resource["kind"] in ("Deployment", "Job"):
            check_pod(resource["metadata"]["name"], resource["spec"]["template"]["spec"])
        if resource["kind"] == "Service":
            check_service(resource, deployments)
    for name, spec in deployments.items():
        check_deployment(name, spec, example)
        check_listeners(name, spec)
    check_policies(example)
    check_scaling(example, deployments)
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(bool(problems))


main()
