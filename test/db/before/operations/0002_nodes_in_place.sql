DROP INDEX "operations"."nodes_operation_id_state_index";--> statement-breakpoint
-- Each row changes two or three times: room on its page, and no index over what changes, let it change in place.
ALTER TABLE "operations"."nodes" SET (fillfactor = 70);--> statement-breakpoint
ALTER TABLE "operations"."node_attempts" SET (fillfactor = 70);
