CREATE SCHEMA "operations";
--> statement-breakpoint
CREATE SEQUENCE "operations"."catalog_change_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE SEQUENCE "operations"."fence_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
CREATE TABLE "operations"."audit" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "operations"."audit_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"actor" text NOT NULL,
	"on_behalf_of" text,
	"roles" text[] DEFAULT '{}' NOT NULL,
	"action" text NOT NULL,
	"object" text NOT NULL,
	"outcome" text NOT NULL,
	"reason" text,
	"before_hash" text,
	"after_hash" text,
	"request_id" text,
	"command_id" uuid,
	"body" text NOT NULL,
	"mac" text NOT NULL,
	"seal_seq" bigint,
	"prev_hash" text,
	"seal_hash" text,
	CONSTRAINT "audit_seal_seq_unique" UNIQUE("seal_seq")
);
--> statement-breakpoint
CREATE TABLE "operations"."catalog_health" (
	"resource_id" text PRIMARY KEY NOT NULL,
	"status" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "operations"."catalog_relationship_types" (
	"type_key" text PRIMARY KEY NOT NULL,
	"inverse_key" text
);
--> statement-breakpoint
CREATE TABLE "operations"."catalog_relationships" (
	"relationship_id" text PRIMARY KEY NOT NULL,
	"rev" integer NOT NULL,
	"type_key" text NOT NULL,
	"from_id" text NOT NULL,
	"to_id" text NOT NULL,
	"properties" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"open" boolean DEFAULT true NOT NULL
);
--> statement-breakpoint
CREATE TABLE "operations"."catalog_resources" (
	"resource_id" text PRIMARY KEY NOT NULL,
	"type_key" text NOT NULL,
	"type_version" integer NOT NULL,
	"name" text NOT NULL,
	"parent_id" text,
	"version" bigint NOT NULL,
	"lifecycle_status" text NOT NULL,
	"health_status" text DEFAULT 'unknown' NOT NULL,
	"labels" jsonb NOT NULL,
	"annotations" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"desired_state" jsonb NOT NULL,
	"observed_state" jsonb NOT NULL,
	"change_seq" bigint DEFAULT 0 NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "operations"."catalog_types" (
	"type_key" text PRIMARY KEY NOT NULL,
	"version" integer NOT NULL,
	"document" jsonb NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "operations"."dead_letter" (
	"consumer" text NOT NULL,
	"event_id" uuid NOT NULL,
	"agg_type" text,
	"agg_id" text,
	"agg_version" bigint,
	"error" text NOT NULL,
	"tries" integer NOT NULL,
	"parked_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"released_at" timestamp with time zone,
	CONSTRAINT "dead_letter_consumer_event_id_pk" PRIMARY KEY("consumer","event_id")
);
--> statement-breakpoint
CREATE TABLE "operations"."durations" (
	"step" text NOT NULL,
	"operation_id" uuid NOT NULL,
	"node_id" text NOT NULL,
	"ms" integer NOT NULL,
	"at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "durations_step_operation_id_node_id_pk" PRIMARY KEY("step","operation_id","node_id")
);
--> statement-breakpoint
CREATE TABLE "operations"."engine_findings" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "operations"."engine_findings_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"operation_id" uuid NOT NULL,
	"found" text NOT NULL,
	"at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"handled_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "operations"."gates" (
	"operation_id" uuid NOT NULL,
	"gate_id" text NOT NULL,
	"kind" text DEFAULT 'approval' NOT NULL,
	"question" text NOT NULL,
	"policy" jsonb NOT NULL,
	"guards" text[] NOT NULL,
	"status" text DEFAULT 'armed' NOT NULL,
	"round" integer DEFAULT 1 NOT NULL,
	"subject" jsonb NOT NULL,
	"digest" text NOT NULL,
	"approved_digest" text,
	"consumed_at" timestamp with time zone,
	"waiting_since" timestamp with time zone,
	"deadline_at" timestamp with time zone,
	"escalation_level" integer DEFAULT 0 NOT NULL,
	"next_escalation_at" timestamp with time zone,
	"decided_by" jsonb,
	"decided_at" timestamp with time zone,
	"decided_command_id" uuid,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "gates_operation_id_gate_id_pk" PRIMARY KEY("operation_id","gate_id")
);
--> statement-breakpoint
CREATE TABLE "operations"."idempotency" (
	"caller" text NOT NULL,
	"route" text NOT NULL,
	"key" text NOT NULL,
	"fingerprint" "bytea" NOT NULL,
	"command_id" uuid,
	"status" integer,
	"headers" jsonb,
	"body" "bytea",
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "idempotency_caller_route_key_pk" PRIMARY KEY("caller","route","key")
);
--> statement-breakpoint
CREATE TABLE "operations"."inbox" (
	"consumer" text NOT NULL,
	"event_id" uuid NOT NULL,
	"received_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "inbox_consumer_event_id_pk" PRIMARY KEY("consumer","event_id")
);
--> statement-breakpoint
CREATE TABLE "operations"."intents" (
	"intent_id" uuid PRIMARY KEY NOT NULL,
	"status" text DEFAULT 'open' NOT NULL,
	"revision" integer DEFAULT 1 NOT NULL,
	"kind" text NOT NULL,
	"title" text NOT NULL,
	"reason" text NOT NULL,
	"request" jsonb NOT NULL,
	"targets_resolved" jsonb NOT NULL,
	"resource_ids" text[] DEFAULT '{}' NOT NULL,
	"requester" jsonb NOT NULL,
	"requester_id" text NOT NULL,
	"labels" jsonb NOT NULL,
	"constraints" jsonb NOT NULL,
	"ticket" text,
	"retry_of" uuid,
	"latest_plan_id" uuid,
	"operation_id" uuid,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "operations"."lease_waits" (
	"operation_id" uuid PRIMARY KEY NOT NULL,
	"wanted" jsonb NOT NULL,
	"since" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "operations"."leases" (
	"resource_id" text NOT NULL,
	"operation_id" uuid NOT NULL,
	"mode" text NOT NULL,
	"since" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "leases_resource_id_operation_id_pk" PRIMARY KEY("resource_id","operation_id")
);
--> statement-breakpoint
CREATE TABLE "operations"."log_chunks" (
	"operation_id" uuid NOT NULL,
	"node_id" text NOT NULL,
	"role" text DEFAULT 'run' NOT NULL,
	"attempt" integer NOT NULL,
	"chunk" integer NOT NULL,
	"lines" jsonb NOT NULL,
	CONSTRAINT "log_chunks_operation_id_node_id_role_attempt_chunk_pk" PRIMARY KEY("operation_id","node_id","role","attempt","chunk")
);
--> statement-breakpoint
CREATE TABLE "operations"."node_attempts" (
	"operation_id" uuid NOT NULL,
	"node_id" text NOT NULL,
	"role" text DEFAULT 'run' NOT NULL,
	"attempt" integer NOT NULL,
	"generation" integer NOT NULL,
	"fence" bigint NOT NULL,
	"fences" text[] DEFAULT '{}' NOT NULL,
	"phase" text NOT NULL,
	"executor" text NOT NULL,
	"pool" text,
	"key" text NOT NULL,
	"inputs" jsonb,
	"outputs" jsonb,
	"error" jsonb,
	"resume" jsonb,
	"progress" jsonb,
	"sequence" bigint DEFAULT 0 NOT NULL,
	"started_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"ended_at" timestamp with time zone,
	"heartbeat_at" timestamp with time zone,
	"deadline_at" timestamp with time zone,
	"log_lines" integer DEFAULT 0 NOT NULL,
	"log_bytes" integer DEFAULT 0 NOT NULL,
	"log_complete" boolean DEFAULT false NOT NULL,
	CONSTRAINT "node_attempts_operation_id_node_id_role_attempt_pk" PRIMARY KEY("operation_id","node_id","role","attempt")
);
--> statement-breakpoint
CREATE TABLE "operations"."nodes" (
	"operation_id" uuid NOT NULL,
	"node_id" text NOT NULL,
	"ordinal" integer NOT NULL,
	"name" text NOT NULL,
	"kind" text NOT NULL,
	"executor" text NOT NULL,
	"target_id" text,
	"group_id" text,
	"depends_on" text[] DEFAULT '{}' NOT NULL,
	"gate_ids" text[] DEFAULT '{}' NOT NULL,
	"spec" jsonb NOT NULL,
	"spec_digest" text NOT NULL,
	"state" text DEFAULT 'pending' NOT NULL,
	"generation" integer DEFAULT 1 NOT NULL,
	"attempt" integer DEFAULT 0 NOT NULL,
	"hold_patch_id" uuid,
	"removed" boolean DEFAULT false NOT NULL,
	"input_overrides" jsonb,
	"outputs" jsonb,
	"error" jsonb,
	"exception" text,
	"catalog" jsonb,
	"ready_at" timestamp with time zone,
	"gated_at" timestamp with time zone,
	"started_at" timestamp with time zone,
	"ended_at" timestamp with time zone,
	"due_at" timestamp with time zone,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "nodes_operation_id_node_id_pk" PRIMARY KEY("operation_id","node_id")
);
--> statement-breakpoint
CREATE TABLE "operations"."operation_artifact_index" (
	"artifact_id" uuid PRIMARY KEY NOT NULL,
	"operation_id" uuid NOT NULL,
	"node_id" text NOT NULL,
	"attempt" integer NOT NULL,
	"name" text NOT NULL,
	"kind" text NOT NULL,
	"media_type" text NOT NULL,
	"size" bigint NOT NULL,
	"sha256" text NOT NULL,
	"status" text NOT NULL,
	"uri" text,
	"content" "bytea",
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"expires_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "operations"."operation_commands" (
	"command_id" uuid PRIMARY KEY NOT NULL,
	"operation_id" uuid NOT NULL,
	"seq" bigint NOT NULL,
	"kind" text NOT NULL,
	"class" text NOT NULL,
	"payload" jsonb NOT NULL,
	"actor" jsonb NOT NULL,
	"reason" text,
	"request_id" text,
	"trace" text,
	"not_after" timestamp with time zone,
	"status" text DEFAULT 'pending' NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"next_try_at" timestamp with time zone,
	"last_error" text,
	"outcome" jsonb,
	"undo" jsonb,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"outcome_at" timestamp with time zone,
	CONSTRAINT "operation_commands_operation_id_seq_unique" UNIQUE("operation_id","seq")
);
--> statement-breakpoint
CREATE TABLE "operations"."operation_control" (
	"operation_id" uuid PRIMARY KEY NOT NULL,
	"control" text DEFAULT 'run' NOT NULL,
	"cancel_mode" text,
	"cancelled_at" timestamp with time zone,
	"pause_reason" text,
	"revision" bigint DEFAULT 1 NOT NULL,
	"command_seq" bigint DEFAULT 0 NOT NULL,
	"ended" boolean DEFAULT false NOT NULL,
	"lease_epoch" integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "operations"."operation_evidence_index" (
	"operation_id" uuid NOT NULL,
	"seq" bigint NOT NULL,
	"kind" text NOT NULL,
	"statement" text NOT NULL,
	"subject" jsonb NOT NULL,
	"subject_digest" text NOT NULL,
	"actor" jsonb NOT NULL,
	"at" text NOT NULL,
	"prev_hash" text NOT NULL,
	"hash" text NOT NULL,
	CONSTRAINT "operation_evidence_index_operation_id_seq_pk" PRIMARY KEY("operation_id","seq")
);
--> statement-breakpoint
CREATE TABLE "operations"."operation_graph_view" (
	"operation_id" uuid NOT NULL,
	"plan_revision" integer NOT NULL,
	"graph" jsonb NOT NULL,
	"plan_hash" text NOT NULL,
	"patch_id" uuid,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "operation_graph_view_operation_id_plan_revision_pk" PRIMARY KEY("operation_id","plan_revision")
);
--> statement-breakpoint
CREATE TABLE "operations"."operation_job_log_index" (
	"log_seq" bigint GENERATED ALWAYS AS IDENTITY (sequence name "operations"."operation_job_log_index_log_seq_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"operation_id" uuid NOT NULL,
	"node_id" text NOT NULL,
	"role" text DEFAULT 'run' NOT NULL,
	"attempt" integer NOT NULL,
	"chunk" integer NOT NULL,
	"generation" integer NOT NULL,
	"first_seq" bigint NOT NULL,
	"last_seq" bigint NOT NULL,
	"first_at" timestamp with time zone NOT NULL,
	"last_at" timestamp with time zone NOT NULL,
	"lines" integer NOT NULL,
	"bytes" integer NOT NULL,
	"levels" text[] DEFAULT '{}' NOT NULL,
	"storage" text DEFAULT 'hot' NOT NULL,
	CONSTRAINT "operation_job_log_index_operation_id_node_id_role_attempt_chunk_pk" PRIMARY KEY("operation_id","node_id","role","attempt","chunk")
);
--> statement-breakpoint
CREATE TABLE "operations"."operation_timeline_view" (
	"operation_id" uuid NOT NULL,
	"seq" bigint NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"type" text NOT NULL,
	"actor" jsonb NOT NULL,
	"on_behalf_of" text,
	"reason" text,
	"node_id" text,
	"gate_id" text,
	"patch_id" text,
	"command_id" uuid,
	"data" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"evidence_seq" bigint,
	CONSTRAINT "operation_timeline_view_operation_id_seq_pk" PRIMARY KEY("operation_id","seq")
);
--> statement-breakpoint
CREATE TABLE "operations"."operations" (
	"operation_id" uuid PRIMARY KEY NOT NULL,
	"intent_id" uuid NOT NULL,
	"plan_id" uuid NOT NULL,
	"title" text NOT NULL,
	"kind" text NOT NULL,
	"engine_status" text DEFAULT 'queued' NOT NULL,
	"end_reason" text,
	"blocked_on" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"total" integer DEFAULT 0 NOT NULL,
	"done" integer DEFAULT 0 NOT NULL,
	"running" integer DEFAULT 0 NOT NULL,
	"failed" integer DEFAULT 0 NOT NULL,
	"waiting" integer DEFAULT 0 NOT NULL,
	"requester" jsonb NOT NULL,
	"requester_id" text NOT NULL,
	"starter_id" text NOT NULL,
	"involved" text[] DEFAULT '{}' NOT NULL,
	"risk_level" text NOT NULL,
	"environment" text,
	"labels" jsonb NOT NULL,
	"ticket" text,
	"retry_of" uuid,
	"resource_ids" text[] DEFAULT '{}' NOT NULL,
	"open_gates" integer DEFAULT 0 NOT NULL,
	"plan_revision" integer DEFAULT 1 NOT NULL,
	"plan_hash" text NOT NULL,
	"constraints" jsonb NOT NULL,
	"max_parallel" integer NOT NULL,
	"deadline_at" timestamp with time zone,
	"pins" jsonb NOT NULL,
	"exceptions" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"timeline_seq" bigint DEFAULT 0 NOT NULL,
	"evidence_seq" bigint DEFAULT 0 NOT NULL,
	"evidence_hash" text NOT NULL,
	"change_seq" bigint DEFAULT 1 NOT NULL,
	"agg_version" bigint DEFAULT 0 NOT NULL,
	"record_seq" bigint DEFAULT 0 NOT NULL,
	"record_result" jsonb,
	"engine_ref" jsonb,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"started_at" timestamp with time zone,
	"ended_at" timestamp with time zone,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"eta_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "operations"."outbox" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "operations"."outbox_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"event_id" uuid NOT NULL,
	"agg_type" text NOT NULL,
	"agg_id" text NOT NULL,
	"agg_version" bigint NOT NULL,
	"type" text NOT NULL,
	"schema_version" integer DEFAULT 1 NOT NULL,
	"payload" jsonb NOT NULL,
	"request_id" text,
	"trace" text,
	"occurred_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"pub_seq" bigint,
	"js_seq" bigint,
	"published_at" timestamp with time zone,
	"parked" text,
	CONSTRAINT "outbox_event_id_unique" UNIQUE("event_id"),
	CONSTRAINT "outbox_pub_seq_unique" UNIQUE("pub_seq"),
	CONSTRAINT "outbox_agg_type_agg_id_agg_version_unique" UNIQUE("agg_type","agg_id","agg_version")
);
--> statement-breakpoint
CREATE TABLE "operations"."packs" (
	"pack" text NOT NULL,
	"version" text NOT NULL,
	"digest" text NOT NULL,
	"document" jsonb NOT NULL,
	"loaded_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "packs_pack_version_pk" PRIMARY KEY("pack","version")
);
--> statement-breakpoint
CREATE TABLE "operations"."plans" (
	"plan_id" uuid PRIMARY KEY NOT NULL,
	"intent_id" uuid NOT NULL,
	"status" text NOT NULL,
	"status_reason" text,
	"revision" integer DEFAULT 1 NOT NULL,
	"plan_hash" text NOT NULL,
	"semantic_digest" text NOT NULL,
	"document" jsonb NOT NULL,
	"report" jsonb NOT NULL,
	"graph" jsonb NOT NULL,
	"requester_id" text NOT NULL,
	"operation_id" uuid,
	"superseded_by" uuid,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "operations"."projection" (
	"name" text PRIMARY KEY NOT NULL,
	"state" text DEFAULT 'live' NOT NULL,
	"pub_seq" bigint DEFAULT 0 NOT NULL,
	"at" timestamp with time zone,
	"code_version" text,
	"hash" text,
	"hash_pub_seq" bigint
);
--> statement-breakpoint
CREATE TABLE "operations"."projection_version" (
	"consumer" text NOT NULL,
	"agg_type" text NOT NULL,
	"agg_id" text NOT NULL,
	"ver" bigint NOT NULL,
	"held" boolean DEFAULT false NOT NULL,
	CONSTRAINT "projection_version_consumer_agg_type_agg_id_pk" PRIMARY KEY("consumer","agg_type","agg_id")
);
--> statement-breakpoint
CREATE TABLE "operations"."relay_state" (
	"name" text PRIMARY KEY NOT NULL,
	"epoch" bigint DEFAULT 0 NOT NULL,
	"next" bigint DEFAULT 1 NOT NULL,
	"stream_created" text,
	"js_last_seq" bigint
);
--> statement-breakpoint
CREATE TABLE "operations"."resource_operation_index" (
	"resource_id" text NOT NULL,
	"operation_id" uuid NOT NULL,
	"relation" text DEFAULT 'target' NOT NULL,
	"change" text,
	"version_from" bigint,
	"version_to" bigint,
	"status" text NOT NULL,
	"kind" text NOT NULL,
	"title" text NOT NULL,
	"started_at" timestamp with time zone,
	"ended_at" timestamp with time zone,
	"last_command_id" uuid,
	CONSTRAINT "resource_operation_index_resource_id_operation_id_pk" PRIMARY KEY("resource_id","operation_id")
);
--> statement-breakpoint
CREATE TABLE "operations"."votes" (
	"operation_id" uuid NOT NULL,
	"gate_id" text NOT NULL,
	"round" integer NOT NULL,
	"user_id" text NOT NULL,
	"decision" text NOT NULL,
	"comment" text,
	"digest" text NOT NULL,
	"group_key" text,
	"actor" jsonb NOT NULL,
	"command_id" uuid NOT NULL,
	"voided" boolean DEFAULT false NOT NULL,
	"at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "votes_operation_id_gate_id_round_user_id_pk" PRIMARY KEY("operation_id","gate_id","round","user_id")
);
--> statement-breakpoint
CREATE INDEX "audit_id_index" ON "operations"."audit" USING btree ("id") WHERE seal_seq is null;--> statement-breakpoint
CREATE INDEX "audit_actor_id_index" ON "operations"."audit" USING btree ("actor","id");--> statement-breakpoint
CREATE INDEX "audit_object_id_index" ON "operations"."audit" USING btree ("object","id");--> statement-breakpoint
CREATE INDEX "catalog_relationships_from_id_type_key_index" ON "operations"."catalog_relationships" USING btree ("from_id","type_key");--> statement-breakpoint
CREATE INDEX "catalog_relationships_to_id_type_key_index" ON "operations"."catalog_relationships" USING btree ("to_id","type_key");--> statement-breakpoint
CREATE INDEX "catalog_resources_type_key_name_index" ON "operations"."catalog_resources" USING btree ("type_key","name");--> statement-breakpoint
CREATE INDEX "catalog_resources_parent_id_index" ON "operations"."catalog_resources" USING btree ("parent_id");--> statement-breakpoint
CREATE INDEX "catalog_resources_change_seq_index" ON "operations"."catalog_resources" USING btree ("change_seq");--> statement-breakpoint
CREATE INDEX "durations_step_at_index" ON "operations"."durations" USING btree ("step","at");--> statement-breakpoint
CREATE INDEX "gates_status_deadline_at_index" ON "operations"."gates" USING btree ("status","deadline_at");--> statement-breakpoint
CREATE INDEX "idempotency_created_at_index" ON "operations"."idempotency" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "intents_requester_id_created_at_index" ON "operations"."intents" USING btree ("requester_id","created_at");--> statement-breakpoint
CREATE INDEX "intents_status_expires_at_index" ON "operations"."intents" USING btree ("status","expires_at");--> statement-breakpoint
CREATE INDEX "leases_operation_id_index" ON "operations"."leases" USING btree ("operation_id");--> statement-breakpoint
CREATE INDEX "nodes_operation_id_ordinal_index" ON "operations"."nodes" USING btree ("operation_id","ordinal");--> statement-breakpoint
CREATE INDEX "nodes_operation_id_state_index" ON "operations"."nodes" USING btree ("operation_id","state");--> statement-breakpoint
CREATE INDEX "operation_artifact_index_operation_id_index" ON "operations"."operation_artifact_index" USING btree ("operation_id");--> statement-breakpoint
CREATE INDEX "operation_commands_operation_id_seq_index" ON "operations"."operation_commands" USING btree ("operation_id","seq") WHERE status in ('pending', 'sending');--> statement-breakpoint
CREATE INDEX "operation_commands_status_not_after_index" ON "operations"."operation_commands" USING btree ("status","not_after");--> statement-breakpoint
CREATE INDEX "operation_job_log_index_log_seq_index" ON "operations"."operation_job_log_index" USING btree ("log_seq");--> statement-breakpoint
CREATE UNIQUE INDEX "operations_plan_id_index" ON "operations"."operations" USING btree ("plan_id") WHERE end_reason is distinct from 'start_withdrawn';--> statement-breakpoint
CREATE INDEX "operations_created_at_operation_id_index" ON "operations"."operations" USING btree ("created_at","operation_id");--> statement-breakpoint
CREATE INDEX "operations_updated_at_operation_id_index" ON "operations"."operations" USING btree ("updated_at","operation_id");--> statement-breakpoint
CREATE INDEX "operations_engine_status_created_at_index" ON "operations"."operations" USING btree ("engine_status","created_at");--> statement-breakpoint
CREATE INDEX "operations_requester_id_created_at_index" ON "operations"."operations" USING btree ("requester_id","created_at");--> statement-breakpoint
CREATE INDEX "operations_resource_ids_index" ON "operations"."operations" USING gin ("resource_ids");--> statement-breakpoint
CREATE INDEX "outbox_id_index" ON "operations"."outbox" USING btree ("id") WHERE pub_seq is null;--> statement-breakpoint
CREATE INDEX "outbox_pub_seq_index" ON "operations"."outbox" USING btree ("pub_seq") WHERE published_at is null and pub_seq is not null;--> statement-breakpoint
CREATE INDEX "plans_intent_id_created_at_index" ON "operations"."plans" USING btree ("intent_id","created_at");--> statement-breakpoint
CREATE INDEX "plans_status_expires_at_index" ON "operations"."plans" USING btree ("status","expires_at");--> statement-breakpoint
CREATE INDEX "resource_operation_index_operation_id_index" ON "operations"."resource_operation_index" USING btree ("operation_id");