CREATE TABLE "operations"."execution_results" (
	"token_sha256" text NOT NULL,
	"result_id" uuid NOT NULL,
	"fingerprint" text NOT NULL,
	"answer" jsonb NOT NULL,
	"at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "execution_results_token_sha256_result_id_pk" PRIMARY KEY("token_sha256","result_id")
);
--> statement-breakpoint
CREATE TABLE "operations"."executions" (
	"token_sha256" text PRIMARY KEY NOT NULL,
	"operation_id" uuid NOT NULL,
	"node_id" text NOT NULL,
	"attempt" integer NOT NULL,
	"generation" integer NOT NULL,
	"fence" bigint NOT NULL,
	"pool" text NOT NULL,
	"heartbeat_s" integer NOT NULL,
	"start_before" timestamp with time zone NOT NULL,
	"deadline_at" timestamp with time zone NOT NULL,
	"started_at" timestamp with time zone,
	"heartbeat_at" timestamp with time zone,
	"sequence" bigint DEFAULT 0 NOT NULL,
	"closed_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "operations"."patch_votes" (
	"operation_id" uuid NOT NULL,
	"patch_id" uuid NOT NULL,
	"user_id" text NOT NULL,
	"decision" text NOT NULL,
	"comment" text,
	"digest" text NOT NULL,
	"groups" text[] DEFAULT '{}' NOT NULL,
	"actor" jsonb NOT NULL,
	"command_id" uuid NOT NULL,
	"at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "patch_votes_operation_id_patch_id_user_id_pk" PRIMARY KEY("operation_id","patch_id","user_id")
);
--> statement-breakpoint
CREATE TABLE "operations"."patches" (
	"operation_id" uuid NOT NULL,
	"patch_id" uuid NOT NULL,
	"status" text DEFAULT 'awaiting_approval' NOT NULL,
	"status_reason" text,
	"base_revision" integer NOT NULL,
	"applied_revision" integer,
	"changes" jsonb NOT NULL,
	"reason" text NOT NULL,
	"ticket" text,
	"proposer" jsonb NOT NULL,
	"proposer_id" text NOT NULL,
	"digest" text NOT NULL,
	"result_hash" text NOT NULL,
	"diff_graph" jsonb NOT NULL,
	"held_nodes" text[] DEFAULT '{}' NOT NULL,
	"rearmed_gates" text[] DEFAULT '{}' NOT NULL,
	"required" jsonb NOT NULL,
	"rebase" jsonb,
	"decided_by" jsonb,
	"decided_at" timestamp with time zone,
	"expires_at" timestamp with time zone NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "patches_operation_id_patch_id_pk" PRIMARY KEY("operation_id","patch_id")
);
--> statement-breakpoint
ALTER TABLE "operations"."gates" ADD COLUMN "ordinal" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
CREATE INDEX "executions_operation_id_node_id_attempt_index" ON "operations"."executions" USING btree ("operation_id","node_id","attempt");--> statement-breakpoint
CREATE INDEX "patches_expires_at_index" ON "operations"."patches" USING btree ("expires_at") WHERE status = 'awaiting_approval';