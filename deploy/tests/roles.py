"""Checks that deploy/postgres/roles.sql has a role for each service, and that the migration and the retry worker alone own the schema."""

import re
import sys

import facts

roles = facts.read("deploy/postgres/roles.sql")


def role(service):
    return f"postrider_{service.replace('-', '_')}"


def members(group):
    return set(re.search(rf"GRANT {group} TO ([\w\s,]+);", roles).group(1).replace(",", " ").split())


logins = {role(service) for service in facts.services()} | {"postrider_migration"}
owners = {"postrider_migration", "postrider_retry_worker"}
made = set(re.findall(r"'(postrider_\w+)'", re.search(r"CREATE ROLE %I LOGIN.*?\\gexec", roles, re.DOTALL).group(0)))
if "GRANT pg_read_all_stats TO postrider_owner;" not in roles:
    sys.exit("a replay cannot see the transactions of other services")
problems = [
    f"{what}: {sorted(found ^ expected)}"
    for what, found, expected in [
        ("roles that log in", made, logins),
        ("members of postrider_owner", members("postrider_owner"), owners),
        ("members of postrider_service", members("postrider_service"), logins - owners),
    ]
    if found != expected
]
if problems:
    sys.exit("\n".join(problems))
