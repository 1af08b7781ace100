/**
 * Commands that the engine has not received, with the time since which it could have. A start that waits for leases, and
 * the commands behind it, wait for other operations. From the grant on, and until a try fails, the wait is counted anew.
 */
export const UNDELIVERED = `(
  select k.operation_id, k.class, k.status, k.not_after,
    case when k.last_error is null then greatest(k.created_at, k.next_try_at) else k.created_at end as since
  from operations.operation_commands k
  where k.status in ('pending', 'sending') and not exists (select from operations.operation_commands h
    where h.operation_id = k.operation_id and h.status = 'pending' and h.next_try_at = 'infinity'))`

/** Commands that the engine has received and not carried out, with the time since which it could have. */
export const UNANSWERED = `(
  select k.operation_id, greatest(k.created_at, k.next_try_at) as since
  from operations.operation_commands k where k.status = 'delivered')`
